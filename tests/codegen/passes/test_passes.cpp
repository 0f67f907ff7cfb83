// The passes, checked by the structure that they leave.
#include "codegen/passes.hpp"
#include "cpu/program.hpp"
#include "graph/rewrite.hpp"
#include "support/catch.hpp"
#include "tessera/tessera.hpp"

namespace test_passes {

using namespace tessera::internal;

namespace {

std::vector<Op> live_ops(const Graph& graph) {
  std::vector<Op> ops;
  for (const auto& region : schedule(graph))
    for (Id id : region) ops.push_back(graph[id].op);
  return ops;
}
bool has(const Graph& graph, Op op) {
  const auto ops = live_ops(graph);
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}
std::size_t count(const Graph& graph, Op op) {
  const auto ops = live_ops(graph);
  return static_cast<std::size_t>(std::count(ops.begin(), ops.end(), op));
}

}  // namespace

TEST_CASE("the pass table is in order and documented", "[passes]") {
  std::vector<std::string_view> names;
  for (const Pass& pass : passes()) {
    names.push_back(pass.name);
    CHECK(!pass.what.empty());
  }
  CHECK(names == std::vector<std::string_view>{"unbatch_mma", "hoist_reshapes", "constant_fold", "cse_loads", "dce"});
}

TEST_CASE("constant_fold computes constants", "[passes]") {
  const Graph graph = constant_fold(trace_kernel("constants", [](In<f32, 2> x, Out<f32, 2> y) {
    Tile c = full<f32>({4, 8}, 2) * 3.0f + exp2(full<f32>({8}, 3));
    Tile i = transpose(broadcast(cast<f32>(constant<i32>(7) / constant<i32>(2)), {8, 4}));
    store(y, {0, 0}, load(x, {0, 0}, {4, 8}) + (c + i));
  }));
  verify(graph, "constant_fold");
  CHECK_FALSE(has(graph, Op::mul));
  CHECK_FALSE(has(graph, Op::exp2));
  CHECK_FALSE(has(graph, Op::cast));
  CHECK_FALSE(has(graph, Op::permute));
  CHECK(count(graph, Op::add) == 1);
  CHECK(to_string(graph).find("constant {17} : f32[4,8]") != std::string::npos);  // 6 + 8 + 3
}

TEST_CASE("constant_fold drops neutral operations, and nothing more", "[passes]") {
  const auto ops_of = [](auto expression) {
    return live_ops(
        dce(constant_fold(trace_kernel("identity", [=](In<i32, 1> x, In<f32, 1> f, InOut<i32, 1> y, InOut<f32, 1> g) {
      Tile i = load(x, {0}, {4});
      Tile r = load(f, {0}, {4});
      expression(i, r, y, g);
    }))));
  };
  using Integers = Tile<i32, 1>;
  using Reals = Tile<f32, 1>;
  const auto has_op = [](const std::vector<Op>& ops, Op op) {
    return std::find(ops.begin(), ops.end(), op) != ops.end();
  };
  CHECK_FALSE(has_op(ops_of([](Integers i, Reals, auto y, auto) { store(y, {0}, i + 0); }), Op::add));
  CHECK_FALSE(has_op(ops_of([](Integers i, Reals, auto y, auto) { store(y, {0}, 0 + i); }), Op::add));
  CHECK_FALSE(has_op(ops_of([](Integers i, Reals, auto y, auto) { store(y, {0}, i - 0); }), Op::sub));
  CHECK_FALSE(has_op(ops_of([](Integers i, Reals, auto y, auto) { store(y, {0}, i << 0); }), Op::shift_left));
  CHECK(has_op(ops_of([](Integers i, Reals, auto y, auto) { store(y, {0}, i << 1); }), Op::shift_left));
  CHECK_FALSE(has_op(ops_of([](Integers i, Reals, auto y, auto) { store(y, {0}, i & i); }), Op::bitwise_and));
  CHECK(has_op(ops_of([](Integers i, Reals, auto y, auto) { store(y, {0}, i ^ i); }), Op::bitwise_xor));
  CHECK_FALSE(has_op(ops_of([](Integers i, Reals, auto y, auto) { store(y, {0}, bitcast<i32>(i)); }), Op::bitcast));
  CHECK(has_op(ops_of([](Integers i, Reals, auto, auto g) { store(g, {0}, bitcast<f32>(i)); }), Op::bitcast));
  CHECK_FALSE(has_op(ops_of([](Integers i, Reals, auto y, auto) { store(y, {0}, 1 * i); }), Op::mul));
  CHECK_FALSE(has_op(ops_of([](Integers i, Reals, auto y, auto) { store(y, {0}, i / 1); }), Op::floor_div));
  CHECK_FALSE(has_op(ops_of([](Integers i, Reals, auto y, auto) { store(y, {0}, cdiv(i, 1)); }), Op::cdiv));
  CHECK_FALSE(has_op(ops_of([](Integers i, Reals, auto y, auto) { store(y, {0}, -(-i)); }), Op::neg));
  CHECK_FALSE(has_op(ops_of([](Integers, Reals r, auto, auto g) { store(g, {0}, -(-r)); }), Op::neg));
  CHECK_FALSE(has_op(ops_of([](Integers i, Reals, auto y, auto) { store(y, {0}, i * 0); }), Op::load));
  CHECK_FALSE(has_op(ops_of([](Integers i, Reals, auto y, auto) { store(y, {0}, 0 * i); }), Op::load));
  CHECK_FALSE(has_op(ops_of([](Integers, Reals r, auto, auto g) { store(g, {0}, r * 1.0f); }), Op::mul));
  CHECK_FALSE(has_op(ops_of([](Integers, Reals r, auto, auto g) { store(g, {0}, reshape(r, {4})); }), Op::reshape));
  CHECK_FALSE(has_op(ops_of([](Integers, Reals r, auto, auto g) { store(g, {0}, cast<f32>(r)); }), Op::cast));
  CHECK_FALSE(
      has_op(ops_of([](Integers, Reals r, auto, auto g) { store(g, {0}, where(full<i32>({4}, 1) == 1, r, 0.0f)); }),
             Op::select));
  CHECK_FALSE(has_op(ops_of([](Integers i, Reals, auto y, auto) { store(y, {0}, i % 1); }), Op::load));
  CHECK(has_op(ops_of([](Integers i, Reals, auto y, auto) { store(y, {0}, i % 2); }), Op::modulo));
  CHECK_FALSE(has_op(ops_of([](Integers i, Reals, auto y, auto) { store(y, {0}, minimum(i, i)); }), Op::minimum));
  CHECK_FALSE(has_op(ops_of([](Integers i, Reals, auto y, auto) { store(y, {0}, maximum(i, i)); }), Op::maximum));
  CHECK_FALSE(has_op(ops_of([](Integers, Reals r, auto, auto g) { store(g, {0}, minimum(r, r)); }), Op::minimum));
  CHECK_FALSE(has_op(ops_of([](Integers, Reals r, auto, auto g) { store(g, {0}, maximum(r, r)); }), Op::maximum));
  CHECK_FALSE(
      has_op(ops_of([](Integers, Reals r, auto, auto g) { store(g, {0}, minimum_nan(r, r)); }), Op::minimum_nan));
  CHECK_FALSE(
      has_op(ops_of([](Integers, Reals r, auto, auto g) { store(g, {0}, maximum_nan(r, r)); }), Op::maximum_nan));
  CHECK(has_op(ops_of([](Integers, Reals r, auto, auto g) { store(g, {0}, maximum(r, -r)); }), Op::maximum));
  CHECK_FALSE(
      has_op(ops_of([](Integers i, Reals r, auto, auto g) { store(g, {0}, where((i < 3) & (i < 3), r, 0.0f)); }),
             Op::logical_and));
  CHECK_FALSE(
      has_op(ops_of([](Integers i, Reals r, auto, auto g) { store(g, {0}, where((i < 3) | (i < 3), r, 0.0f)); }),
             Op::logical_or));
  CHECK(has_op(ops_of([](Integers i, Reals r, auto, auto g) { store(g, {0}, where((i < 3) & (i < 4), r, 0.0f)); }),
               Op::logical_and));
  CHECK_FALSE(has_op(ops_of([](Integers i, Reals r, auto, auto g) { store(g, {0}, where(i < 3, r, r)); }), Op::select));
  CHECK(has_op(ops_of([](Integers i, Reals r, auto, auto g) { store(g, {0}, where(i < 3, r, -r)); }), Op::select));
  CHECK_FALSE(has_op(ops_of([](Integers, Reals r, auto, auto g) { store(g, {0}, r - 0.0f); }), Op::sub));
  // A condition with more elements broadcasts the operands.
  CHECK(has_op(ops_of([](Integers i, Reals r, auto, auto g) {
                 const Tile<f32, 2> wide = where(reshape(i, {4, 1}) < 3, reshape(r, {1, 4}), reshape(r, {1, 4}));
                 store(g, {0}, reshape(wide, {16}));
               }),
               Op::select));
  // -0 + 0 is 0, -0 - -0 as well; x - x may be NaN, and so may x * 0; a broadcast changes the shape.
  CHECK(has_op(ops_of([](Integers, Reals r, auto, auto g) { store(g, {0}, r - -0.0f); }), Op::sub));
  CHECK(has_op(ops_of([](Integers, Reals r, auto, auto g) { store(g, {0}, r - r); }), Op::sub));
  CHECK(has_op(ops_of([](Integers, Reals r, auto, auto g) { store(g, {0}, r + 0.0f); }), Op::add));
  CHECK(has_op(ops_of([](Integers, Reals r, auto, auto g) { store(g, {0}, r * 0.0f); }), Op::mul));
  CHECK(has_op(ops_of([](Integers i, Reals, auto y, auto) {
                 store(y, {0}, reshape(i + zeros<i32>({2, 1}), {8}));
               }),
               Op::add));
}

TEST_CASE("cse_loads reads an InOut once if nothing was written in between", "[passes]") {
  const Graph graph = cse_loads(trace_kernel("reads", [](InOut<f32, 1> x, Out<f32, 1> y) {
    Tile a = load(x, {0}, {4});
    Tile b = load(x, {0}, {4});
    store(y, {0}, a + b);  // may not touch x, but the pass does not analyze that
    Tile c = load(x, {0}, {4});
    store(x, {0}, c);
    Tile d = load(x, {0}, {4});
    store(y, {1}, d);
  }));
  verify(graph, "common");
  CHECK(count(graph, Op::load) == 3);
}

TEST_CASE("cse_loads does not reach across loops", "[passes]") {
  const Graph graph = cse_loads(trace_kernel("loops", [](InOut<f32, 1> x, Out<f32, 1> y) {
    Tile a = load(x, {0}, {4});
    store(y, {0}, a);
    for (Index i : range(3)) {
      Tile b = load(x, {0}, {4});
      store(x, {0}, b + cast<f32>(i));
    }
    Tile c = load(x, {0}, {4});
    store(y, {1}, c);
  }));
  verify(graph, "common");
  CHECK(count(graph, Op::load) == 3);
}

TEST_CASE("dce drops unused loops, carried values, branches and reads", "[passes]") {
  const Graph graph = dce(trace_kernel("dead", [](InOut<f32, 1> x, Out<f32, 1> y) {
    Var used = zeros<f32>({4}), unused = zeros<f32>({4}), feeds_itself = zeros<f32>({4});
    [[maybe_unused]] Tile ignored = load(x, {3}, {4});
    for ([[maybe_unused]] Index i : range(7)) {
      used = used + 1;
      feeds_itself = feeds_itself * 2;
    }
    for ([[maybe_unused]] Index i : range(9)) unused = unused + used;
    if_(x.extent(0) == 3, [&] { [[maybe_unused]] Tile nothing = exp(used); });
    store(y, {0}, used);
  }));
  verify(graph, "dead");
  CHECK(count(graph, Op::loop) == 1);
  CHECK(count(graph, Op::argument) == 2);  // the counter and the one value
  CHECK_FALSE(has(graph, Op::branch));
  CHECK_FALSE(has(graph, Op::exp));
  CHECK_FALSE(has(graph, Op::load));
  CHECK_FALSE(has(graph, Op::mul));
}

TEST_CASE("dce keeps operands of effects inside regions", "[passes]") {
  const auto kernel = trace_kernel("alive", [](In<f32, 2> x, Out<f32, 2> y) {
    Var sum_so_far = zeros<f32>({1, 4});
    for (Index i : range(5)) {
      sum_so_far = sum_so_far + load(x, {i, 0}, {1, 4});
      if_(i % 2 == 0, [&] { store(y, {i, 0}, sum_so_far * 2); });
    }
  });
  const Graph graph = dce(kernel);
  verify(graph, "dead");
  CHECK(to_string(graph) == to_string(kernel));
}

TEST_CASE("passes do not change a kernel's results", "[passes]") {
  const auto graph = trace_kernel("whole", [](In<f32, 2> x, InOut<f32, 2> y, Scalar<i32> n) {
    Index b = blocks(x.extent(0));
    Tile row = load(x, {b, 0}, {1, 8});
    Var acc = row * 1.0f, other = row + 0.0f;
    for (Index i : range(n)) {
      acc = acc + load(x, {i, 0}, {1, 8}) * cast<f32>(i + 0);
      other = other * 2;
    }
    Tile before = load(y, {b, 0}, {1, 8});
    Tile again = load(y, {b, 0}, {1, 8});
    store(y, {b, 0}, acc + before * again);
  });
  const Graph passed = run_passes(graph);
  CHECK(live_ops(passed).size() < live_ops(graph).size());
  const auto run = [](const Graph& g) {
    std::vector<float> x(5 * 8), y(5 * 8);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 2, y[i] = static_cast<float>(i % 5);
    std::vector<Argument> arguments(3);
    for (std::size_t a = 0; a < 2; ++a) {
      arguments[a].data = a ? y.data() : x.data();
      arguments[a].extent = {5, 8}, arguments[a].stride = {8, 1};
    }
    arguments[2].scalar.i32 = 4;
    const std::int64_t grid[] = {5};
    cpu::Program(g).run(arguments, grid);
    return y;
  };
  CHECK(run(graph) == run(passed));
}

}  // namespace test_passes
