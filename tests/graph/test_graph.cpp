// The graph: sharing, regions, canonical text, and the verifier as the written spec.
#include "graph/evaluate.hpp"
#include "graph/rewrite.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"
#include "tessera/dsl/control.hpp"

namespace test_graph {

using namespace tessera::internal;

namespace {

std::size_t count(const Graph& graph, Op op) {
  std::size_t n = 0;
  for (const auto& region : schedule(graph))
    for (Id id : region) n += graph[id].op == op;
  return n;
}

Id find(const Graph& graph, Op op) {
  for (Id id = 0; id < graph.nodes.size(); ++id)
    if (graph[id].op == op) return id;
  FAIL("no node " << name(op));
  return no_id;
}

Graph copy_kernel() {
  return trace_kernel("copy", [](In<f32, 2> x, Out<f32, 2> y, Scalar<f32> s) {
    auto [i, j] = blocks(x.extent(0), 4);
    require(x.extent(1) == 8, "eight");
    Var acc = load(x, {i, j}, {2, 2});
    for (Index k : range(x.extent(0))) {
      Tile next = load(x, {k, j}, {2, 2});
      acc = acc * s + next;
      if_(k == 3, [&] { store(y, {i, k}, next); });
    }
    store(y, {i, j}, acc);
  });
}

}  // namespace

TEST_CASE("an expression used twice is computed once", "[graph]") {
  const Graph graph = trace_kernel("cse", [](In<f32, 2> x, Out<f32, 2> y) {
    Tile a = load(x, {0, 0}, {4, 8});
    auto shifted = a - max(a, 1);  // kept in locals and captured by tiles computed from them: values all the way down
    auto e = exp(shifted) / sum(exp(shifted), 1);
    Tile first = e;
    Tile second = e;
    Tile written_again = exp(a - max(a, 1)) / sum(exp(a - max(a, 1)), 1);
    store(y, {0, 0}, first + second + written_again);
  });
  for (Op op : {Op::max, Op::sub, Op::exp, Op::sum, Op::div}) CHECK(count(graph, op) == 1);
  CHECK(count(graph, Op::add) == 2);
}

TEST_CASE("loop invariants are hoisted", "[graph]") {
  const Graph graph = trace_kernel("hoist", [](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y, Scalar<f32> s) {
    Index row = blocks(x.extent(0));
    Var acc = zeros<f32>({1, 8}), untouched = full<f32>({1, 8}, 3);
    for (Index k : range(10)) {
      Tile invariant = load(x, {row, 0}, {1, 8}) * (s * 2.0f) + untouched;
      acc = acc + invariant * load(w, {k, 0}, {1, 8});
    }
    store(y, {row, 0}, acc + untouched);
  });
  const auto order = schedule(graph);
  REQUIRE(order.size() == 2);
  const Node& loop = graph[find(graph, Op::loop)];
  CHECK(loop.in.size() == 2);  // the count and one carried value: the Var that is only read is not carried
  std::vector<Op> inside;
  for (Id id : order[1]) inside.push_back(graph[id].op);
  CHECK(inside == std::vector<Op>{Op::argument, Op::argument, Op::load, Op::mul, Op::add});
}

TEST_CASE("a Var that is only read is not carried, in nested loops too", "[graph]") {
  const Graph graph = trace_kernel("nested", [](In<f32, 1> x, Out<f32, 1> y) {
    Var a = load(x, {0}, {4}), b = load(x, {1}, {4});
    for ([[maybe_unused]] Index i : range(3))
      for ([[maybe_unused]] Index j : range(4)) a = a + b;
    store(y, {0}, a);
  });
  for (const Node& node : graph.nodes)
    if (node.op == Op::loop) CHECK(node.in.size() == 2);
  CHECK(count(graph, Op::loop) == 2);
}

TEST_CASE("canonical text does not depend on the order of evaluation", "[graph]") {
  const auto kernel = [](bool left_first) {
    return to_string(trace_kernel("order", [=](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {
      std::optional<Tile<f32, 2>> a, b;
      if (left_first) a.emplace(load(x, {0, 0}, {4, 4}));
      b.emplace(load(w, {0, 0}, {4, 4}));
      if (!left_first) a.emplace(load(x, {0, 0}, {4, 4}));
      [[maybe_unused]] Tile unused = exp(*b);
      store(y, {0, 0}, *a * *b + *a);
    }));
  };
  CHECK(kernel(true) == kernel(false));
}

TEST_CASE("a loop carries Vars in the order in which they were made, whichever it uses first", "[graph]") {
  const auto kernel = [](bool first_first) {
    return to_string(trace_kernel("carried", [=](In<f32, 1> x, Out<f32, 1> y) {
      Var a = load(x, {0}, {4}), b = load(x, {1}, {4});
      for (Index i : range(3)) {
        if (first_first) a = a + cast<f32>(i);
        b = b * cast<f32>(i);
        if (!first_first) a = a + cast<f32>(i);
      }
      store(y, {0}, a - b);
    }));
  };
  CHECK(kernel(true) == kernel(false));
}

TEST_CASE("canonical text is complete", "[graph]") {
  CHECK(to_string(copy_kernel()) == R"(kernel copy(In<f32, 2>, Out<f32, 2>, Scalar<f32>)
  %0 = tensor {0} : f32
  %1 = extent %0 {0} : i32[]
  %2 = constant {4} : i32[]
  %3 = extent %0 {1} : i32[]
  %4 = constant {8} : i32[]
  %5 = equal %3 %4 : pred[]
  %6 = require %5 "eight"
  %7 = block {0} : i32[]
  %8 = block {1} : i32[]
  %9 = load %0 %7 %8 {0} : f32[2,2]
  %10 = constant {3} : i32[]
  %11 = tensor {1} : f32
  %12 = scalar {2} : f32[]
  %13 = loop %1 %9
    %14 = argument {0} : i32[]
    %15 = argument {1} : f32[2,2]
    %16 = equal %14 %10 : pred[]
    %17 = load %0 %14 %8 {0} : f32[2,2]
    %18 = branch %16
      %19 = store %17 %11 %7 %14
    %20 = mul %15 %12 : f32[2,2]
    %21 = add %20 %17 : f32[2,2]
    yield %21
  %22 = result %13 {0} : f32[2,2]
  %23 = store %22 %11 %7 %8
  grid %1 %2
)");
}

TEST_CASE("text with locations has the author's lines", "[graph]") {
  const Graph graph = trace_kernel("here", [](In<f32, 1> x, Out<f32, 1> y) { store(y, {0}, load(x, {0}, {4})); });
  CHECK(to_string(graph, true).find("test_graph.cpp:") != std::string::npos);
  CHECK(to_string(graph, false).find("test_graph.cpp:") == std::string::npos);
}

TEST_CASE("copying a graph changes nothing", "[graph]") {
  const Graph graph = copy_kernel();
  CHECK(to_string(canonical(graph)) == to_string(graph));
}

TEST_CASE("extents of views are known", "[graph]") {
  const Graph graph = trace_kernel("extents", [](In<f32, 3> x, Out<i32, 1> y, Scalar<i32> n) {
    const auto view = x.slice(1, 2, n).permute({2, 0, 1});
    store(y, {0}, concat(0, reshape(view.extent(0), {1}), reshape(view.extent(1), {1}), reshape(view.extent(-1), {1})));
  });
  CHECK(count(graph, Op::extent) == 2);  // the tensor's axes 2 and 0; the third is n itself
  CHECK(count(graph, Op::slice) == 0);
}

TEST_CASE("constants of equal value and type are one node", "[graph]") {
  const Graph graph = trace_kernel("constants", [](In<f32, 1> x, Out<f32, 1> y) {
    Tile a = load(x, {0}, {4});
    store(y, {0}, (a + 2) * 2.0f - 2.0);
  });
  CHECK(count(graph, Op::constant) == 2);  // 2 as f32, and the index 0
}

TEST_CASE("the verifier accepts traced graphs and reports each rule that is broken", "[graph]") {
  const Graph good = copy_kernel();
  verify(good, "tracing");
  struct Fault {
    std::string rule;
    std::function<void(Graph&)> plant;
  };
  const auto node = [](Graph& graph, Op op) -> Node& { return graph.nodes[find(graph, op)]; };
  const std::vector<Fault> faults{
      {"operands come before", [&](Graph& g) { node(g, Op::add).in[0] = static_cast<Id>(g.nodes.size() - 1); }},
      {"innermost region", [&](Graph& g) { node(g, Op::equal).region = 1; }},
      {"one around it", [&](Graph& g) { node(g, Op::mul).region = 0; }},
      {"one around it",
       [&](Graph& g) { node(g, Op::result).in[0] = find(g, Op::loop), g.nodes.back().in[0] = find(g, Op::mul); }},
      {"shape follows",
       [&](Graph& g) {
    node(g, Op::add).shape = {2, 3};
       }},
      {"operands and attributes", [&](Graph& g) { node(g, Op::add).in.pop_back(); }},
      {"operands and attributes", [&](Graph& g) { node(g, Op::block).attr.clear(); }},
      {"operands", [&](Graph& g) { node(g, Op::mul).type = ElementType::i32; }},
      {"listed once", [&](Graph& g) { g.regions[0].effects.pop_back(); }},
      {"listed once", [&](Graph& g) { g.regions[0].effects.push_back(g.regions[0].effects.back()); }},
      {"program order", [&](Graph& g) { std::swap(g.regions[0].effects[0], g.regions[0].effects[1]); }},
      {"listed once", [&](Graph& g) { node(g, Op::load).ordered = true; }},
      {"reads of an InOut are ordered", [&](Graph& g) { g.parameters[0].access = Access::in_out; }},
      {"an Out is not read", [&](Graph& g) { g.parameters[0].access = Access::out; }},
      {"an In is not written", [&](Graph& g) { g.parameters[1].access = Access::in; }},
      {"parameter", [&](Graph& g) { node(g, Op::scalar).attr[0] = 0; }},
      {"axis of the grid", [&](Graph& g) { node(g, Op::block).attr[0] = 2; }},
      {"computed from extents", [&](Graph& g) { g.grid[0] = find(g, Op::block); }},
      {"carried value", [&](Graph& g) { g.regions[1].yields.clear(); }},
      {"keeps its type", [&](Graph& g) { g.regions[1].yields[0] = find(g, Op::block); }},
      {"the parent of a region is the region of its owner", [&](Graph& g) { node(g, Op::branch).attr[0] = 1; }},
      {"know their loop", [&](Graph& g) { node(g, Op::argument).attr[0] = 1; }},
      {"listed once", [&](Graph& g) { g.regions[1].arguments.pop_back(); }},
      {"names a text", [&](Graph& g) { node(g, Op::require).attr[0] = 1; }},
      {"names a parameter", [&](Graph& g) { node(g, Op::tensor).attr[0] = 3; }},
      {"a view is taken from a view",
       [&](Graph& g) {
    for (Id id = find(g, Op::constant); id < g.nodes.size(); ++id)
      if (g[id].op == Op::extent) g.nodes[id].in[0] = find(g, Op::constant);
       }},
      {"host can compute", [&](Graph& g) { node(g, Op::block).uniform = true; }},
      {"one of a loop's carried", [&](Graph& g) { node(g, Op::result).attr[0] = 1; }},
      {"at least 1",
       [&](Graph& g) {
    node(g, Op::load).shape = {2, 0};
       }},
      };
  for (const Fault& fault : faults) {
    Graph bad = good;
    fault.plant(bad);
    std::string text = "(accepted)";
    try {
      verify(bad, "a planted fault");
    } catch (const InternalError& error) {
      text = error.what();
    } catch (const std::exception& error) {
      text = std::string("another exception: ") + error.what();
    }
    INFO("rule: " << fault.rule << "\nsaid: " << text);
    CHECK(text.find("a planted fault") != std::string::npos);
    CHECK(text.find(fault.rule) != std::string::npos);
  }
}

TEST_CASE("scalar ops follow the table's host expressions", "[graph]") {
  const auto f = [](float x) {
    Cell c;
    c.f32 = x;
    return c;
  };
  const auto i = [](std::int32_t x) {
    Cell c;
    c.i32 = x;
    return c;
  };
  CHECK(evaluate(Op::floor_div, ElementType::i32, i(-7), i(2)).i32 == -4);
  CHECK(evaluate(Op::modulo, ElementType::i32, i(-7), i(3)).i32 == 2);
  CHECK(evaluate(Op::floor_div, ElementType::i32, i(5), i(0)).i32 == 0);
  CHECK(evaluate(Op::add, ElementType::f32, f(0.1f), f(0.2f)).f32 == 0.1f + 0.2f);
  CHECK(evaluate_cast(ElementType::f32, ElementType::i32, f(1e20f)).i32 == std::numeric_limits<std::int32_t>::max());
  CHECK(evaluate_cast(ElementType::f32, ElementType::bf16, f(1.00390625f)).f32 == 1.0f);
  CHECK(decode(ElementType::f32, encode(ElementType::f32, f(-0.0f))).f32 == 0.0f);
}

TEST_CASE("a kernel may be a hundred thousand ops deep", "[graph]") {
  const Graph graph = trace_kernel("deep", [](In<f32, 1> x, Out<f32, 1> y, Scalar<f32> s) {
    Var v = load(x, {0}, {4});
    for (int i = 0; i < 100000; ++i) v = v + static_cast<float>(i);
    store(y, {0}, v);
    Var u = s + 1.0f;
    for (int i = 0; i < 64; ++i) u = u + u;  // exponential if it is walked without memoization
    store(y, {1}, full<f32>({4}, 0) + u);
  });
  CHECK(count(graph, Op::add) == 100066);
}

}  // namespace test_graph
