// Matmuls that are split into strips of k: where this is done, and that the result stays the same. Values are small
// integers, whose sums are exact in any order.
#include <limits>

#include "codegen/passes.hpp"
#include "codegen/schedule/split_matmuls.hpp"
#include "jit/compile/nvrtc.hpp"
#include "model/kernels.hpp"
#include "support/catch.hpp"
#include "support/compiled_device.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"
#ifdef TESSERA_HAS_EMULATOR
#include "support/emulated_device.hpp"
#endif

namespace test_split_matmuls {

using namespace tessera::internal;

namespace {

const Arch blackwell = Arch::parse("sm_120");

/// The live nodes with an op.
std::vector<const Node*> all_of(const Graph& graph, Op op) {
  std::vector<const Node*> nodes;
  for (const auto& region : schedule(graph))
    for (Id id : region)
      if (graph[id].op == op) nodes.push_back(&graph[id]);
  return nodes;
}
std::vector<Shape> shapes_of(const Graph& graph, Op op) {
  std::vector<Shape> shapes;
  for (const Node* node : all_of(graph, op)) shapes.push_back(node->shape);
  return shapes;
}

template <class F>
Graph graph_of(const F& function) {
  return run_passes(trace_kernel("product", function));
}
template <class F>
bool is_split(const F& function, Arch arch = blackwell) {
  return split_matmuls(graph_of(function), Target::of(arch)).has_value();
}

template <class T>
Tensor<T, 2> numbers(const Device& device, std::int64_t rows, std::int64_t columns, unsigned seed) {
  std::vector<T> values(static_cast<std::size_t>(rows * columns));
  for (T& value : values) {
    seed = seed * 1664525 + 1013904223;
    value = T(static_cast<float>(static_cast<int>(seed >> 29) - 3));
  }
  Tensor<T, 2> tensor(device, {rows, columns});
  tensor.copy_from(values);
  return tensor;
}

/// y [40,48] as a kernel fills it, from x [40,K] and w [K,48], or w [48,K] if it is `transposed`.
template <class T, class... S>
std::vector<f32> run(const Kernel<In<f32, 2>, In<T, 2>, Out<f32, 2>, S...>& kernel, std::int64_t k, bool transposed,
                     const Device& device, const typename S::type&... scalars) {
  const auto x = numbers<f32>(device, 40, k, 1);
  const auto w = transposed ? numbers<T>(device, 48, k, 2) : numbers<T>(device, k, 48, 2);
  const Tensor<f32, 2> y(device, {40, 48});
  y.copy_from(std::vector<f32>(40 * 48, -1));
  launch(device.stream(), kernel, x, w, y, scalars...);
  return y.to_vector();
}

/// Checks that a kernel is split, and runs it whole and split.
template <class T = f32, class F, class... S>
void check_same(const F& function, std::int64_t k, bool transposed = false, const S&... scalars) {
  using K = Kernel<In<f32, 2>, In<T, 2>, Out<f32, 2>, Scalar<S>...>;
  const Graph whole = graph_of(function);
  const auto split = split_matmuls(whole, Target::of(blackwell));
  REQUIRE(split);
  CHECK(split->parameters == whole.parameters);
  CHECK(split->grid.size() == whole.grid.size());
  CHECK(run(K(*split), k, transposed, Device::cpu(), scalars...) ==
        run(K(whole), k, transposed, Device::cpu(), scalars...));
}

}  // namespace

TEST_CASE("a loop that only accumulates a matmul takes shorter k-iterations", "[passes]") {
  const Graph whole = run_passes(kernels::linear<f32, f32>({128, 128, 256}).graph());
  const auto split = split_matmuls(whole, Target::of(blackwell));
  REQUIRE(split);
  CHECK(all_of(*split, Op::loop).size() == 1);
  CHECK(shapes_of(*split, Op::load) == std::vector<Shape>{{128}, {128, 16}, {16, 128}});
  const auto loads = all_of(*split, Op::load);
  CHECK((*split)[loads[1]->in[2]].op == Op::argument);  // the counter
  CHECK(loads[1]->in[2] == loads[2]->in[1]);
  const Node& count = (*split)[all_of(*split, Op::loop)[0]->in[0]];
  REQUIRE(count.op == Op::mul);
  CHECK((*split)[count.in[1]].number().i32 == 16);
  CHECK(count.uniform == (*split)[count.in[0]].uniform);

  const auto hopper = split_matmuls(whole, Target::of(Arch::sm_90a));
  REQUIRE(hopper);
  CHECK(shapes_of(*hopper, Op::load) == std::vector<Shape>{{128}, {128, 32}, {32, 128}});
}

TEST_CASE("a matmul elsewhere gets a loop of strips", "[passes]") {
  const Graph whole = graph_of([](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {
    Index m = blocks(4);
    Var acc = zeros<f32>({64, 64});
    for (Index k : range(5)) acc = mma(load(x, {m, k + 1}, {64, 512}), load(w, {k + 1, 3}, {512, 64}), acc * 0.5f);
    store(y, {m, 0}, mma(load(x, {0, 0}, {64, 512}), load(w, {2, 0}, {512, 64}), acc));
  });
  const auto split = split_matmuls(whole, Target::of(blackwell));
  REQUIRE(split);
  CHECK(all_of(*split, Op::loop).size() == 3);
  for (const Shape& shape : shapes_of(*split, Op::load)) CHECK((shape == Shape{64, 32} || shape == Shape{32, 64}));
  for (const Node* matmul : all_of(*split, Op::mma)) {
    const Region& body = split->regions[matmul->region];
    CHECK(matmul->in[2] == body.arguments[1]);
    CHECK(&(*split)[body.yields[0]] == matmul);
  }
  // The first strip of tile 0 is 0, that of tile 2 is 32.
  const auto loads = all_of(*split, Op::load);
  CHECK(std::any_of(loads.begin(), loads.end(), [&](const Node* load) {
    return (*split)[load->in[2]].op == Op::argument && (*split)[load->in[1]].op == Op::constant;
  }));
  const auto adds = all_of(*split, Op::add);
  CHECK(std::any_of(adds.begin(), adds.end(), [&](const Node* add) {
    const Node& first = (*split)[add->in[0]];
    return first.op == Op::constant && first.type == ElementType::i32 && first.number().i32 == 32;
  }));
}

TEST_CASE("strips fit the k-steps of tensor cores if possible", "[passes]") {
  const auto strip_of = [](int k) {
    const auto split = split_matmuls(
        graph_of([=](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {
          store(y, {0, 0}, mma(load(x, {0, 0}, {64, k}), load(w, {0, 0}, {k, 64}), zeros<f32>({64, 64})));
        }),
        Target::of(blackwell));
    REQUIRE(split);
    return shapes_of(*split, Op::load)[0][1];
  };
  CHECK(strip_of(512) == 32);
  CHECK(strip_of(720) == 16);  // not 30
  CHECK(strip_of(500) == 25);
}

TEST_CASE("matmuls that fit, or cannot be split, stay whole", "[passes]") {
  CHECK_FALSE(is_split([](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {  // 2 stages in 96 KB of 99
    store(y, {0, 0}, mma(load(x, {0, 0}, {64, 92}), load(w, {0, 0}, {92, 64}), zeros<f32>({64, 64})));
  }));
  const auto padded = [](float padding) {
    return [=](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {
      store(y, {0, 0}, mma(load(x, {0, 0}, {64, 512}, padding), load(w, {0, 0}, {512, 64}), zeros<f32>({64, 64})));
    };
  };
  CHECK(is_split(padded(0)));
  CHECK_FALSE(is_split(padded(1)));
  CHECK_FALSE(is_split([](InOut<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {
    Tile a = load(x, {0, 0}, {64, 512});
    store(y, {0, 0}, mma(a, load(w, {0, 0}, {512, 64}), zeros<f32>({64, 64})));
  }));
  CHECK_FALSE(is_split([](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {  // computed
    store(y, {0, 0}, mma(load(x, {0, 0}, {64, 512}) + 1, load(w, {0, 0}, {512, 64}), zeros<f32>({64, 64})));
  }));
  CHECK_FALSE(is_split([](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {  // gemv
    store(y, {0, 0}, mma(load(x, {0, 0}, {8, 1024}), load(w, {0, 0}, {1024, 64}), zeros<f32>({8, 64})));
  }));
  CHECK_FALSE(is_split([](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {  // 521 is prime
    store(y, {0, 0}, mma(load(x, {0, 0}, {64, 521}), load(w, {0, 0}, {521, 64}), zeros<f32>({64, 64})));
  }));
  // A tile from outside the loop is used in each iteration, and is split only if it does not fit.
  const auto reused = [](int k) {
    return [=](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {
      Tile a = load(x, {0, 0}, {64, k});
      for (Index n : range(9)) store(y, {0, n}, mma(a, load(w, {0, n}, {k, 16}), zeros<f32>({64, 16})));
    };
  };
  CHECK_FALSE(is_split(reused(288)));
  CHECK(is_split(reused(320)));
}

TEST_CASE("matmuls share the available shared memory", "[passes]") {
  const auto matmuls = [](int count) {
    return [=](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {  // 40 KB each
      Var acc = zeros<f32>({64, 64});
      for (int i = 0; i < count; ++i) acc = mma(load(x, {0, i}, {64, 80}), load(w, {i, 0}, {80, 64}), acc);
      store(y, {0, 0}, acc);
    };
  };
  CHECK_FALSE(is_split(matmuls(1)));
  CHECK(is_split(matmuls(2)));
}

TEST_CASE("strips accumulate to the whole matmul", "[passes]") {
  // Ragged: neither tiles nor strips divide 1100 or 700.
  check_same(
      [](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), 32), cdiv(y.extent(1), 32));
    store(y, {m, n}, kernels::matmul<f32>(x, w, m, n, {32, 32, 512}));
      },
      1100);
  check_same(
      [](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {
    store(y, {0, 0}, mma(load(x, {0, 0}, {40, 1000}), load(w, {0, 0}, {1000, 48}), full<f32>({40, 48}, 3)));
      },
      700);
  // A loop that does more than that, and a load with another user.
  check_same(
      [](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {
    Var acc = zeros<f32>({40, 48}), sums = zeros<f32>({40, 1});
    for (Index k : range(cdiv(x.extent(1), 512))) {
      Tile a = load(x, {0, k}, {40, 512});
      acc = mma(a, load(w, {k, 0}, {512, 48}), acc);
      sums = sums + sum(a, 1);
    }
    store(y, {0, 0}, acc + sums);
      },
      1100);
  // Transposed, through axes of extent 1.
  check_same(
      [](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {
    Var acc = zeros<f32>({40, 48});
    for (Index k : range(cdiv(x.extent(1), 512))) {
      Tile b = permute(reshape(load(w, {0, k}, {48, 512}), {48, 1, 512}), {2, 1, 0});
      acc = mma(load(x, {0, k}, {40, 512}), reshape(b, {512, 48}), acc);
    }
    store(y, {0, 0}, acc);
      },
      1100, true);
  // The same outside of a loop, and with another type.
  check_same<f16>(
      [](In<f32, 2> x, In<f16, 2> w, Out<f32, 2> y) {
    Tile b = permute(reshape(cast<f32>(load(w, {0, 1}, {48, 512})), {48, 1, 512}), {2, 1, 0});
    store(y, {0, 0}, mma(load(x, {0, 1}, {40, 512}), reshape(b, {512, 48}), zeros<f32>({40, 48})));
      },
      1100, true);
  // A loop that uses its counter for something else.
  check_same(
      [](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {
    Var acc = zeros<f32>({20, 48});
    for (Index k : range(cdiv(x.extent(1), 512))) {
      acc = mma(load(x, {1, k}, {20, 512}), load(w, {k, 0}, {512, 48}), acc);
      store(y, {k, 0}, full<f32>({1, 48}, 5) + cast<f32>(k));
    }
    store(y, {1, 0}, acc);
      },
      1100);
  // A matmul of a tile with itself: y is x' x.
  check_same(
      [](In<f32, 2> x, In<f32, 2>, Out<f32, 2> y) {
    Var acc = zeros<f32>({48, 48});
    for (Index k : range(cdiv(x.extent(1), 512))) {
      Tile a = load(x, {0, k}, {48, 512});
      acc = mma(a, transpose(a), acc);
    }
    store(y, {0, 0}, acc);
      },
      1100);
  // The same where the transposed load is the second operand, and its transpose the first.
  check_same(
      [](In<f32, 2> x, In<f32, 2>, Out<f32, 2> y) {
    Var acc = zeros<f32>({48, 48});
    for (Index k : range(cdiv(x.extent(1), 512))) {
      Tile a = transpose(load(x, {0, k}, {48, 512}));
      acc = mma(transpose(a), a, acc);
    }
    store(y, {0, 0}, acc);
      },
      1100);
}

TEST_CASE("strips of tiles outside of their tensors are padding, too", "[passes]") {
  const auto at = [](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y, Scalar<i32> i) {
    store(y, {0, 0}, mma(load(x, {0, i}, {40, 512}), load(w, {i, 0}, {512, 48}), zeros<f32>({40, 48})));
  };
  for (i32 i : {0, 1, 2, 3, -1, -2, 1 << 26, 1 << 27, 1 << 28, 1 << 29, 1 << 30, -(1 << 28), -(1 << 30),
                std::numeric_limits<i32>::max(), std::numeric_limits<i32>::min()}) {
    INFO(i);
    check_same(at, 1100, false, i);
  }
  const auto rounds = [](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y, Scalar<i32> n) {
    Var acc = zeros<f32>({40, 48});
    for (Index k : range(n)) acc = mma(load(x, {0, k}, {40, 512}), load(w, {k, 0}, {512, 48}), acc);
    store(y, {0, 0}, acc);
  };
  for (i32 n : {0, 1, 2, 5, -1, -(1 << 28), -(1 << 28) + 1, std::numeric_limits<i32>::min()}) {
    INFO(n);
    check_same(rounds, 1100, false, n);
  }
}

TEST_CASE("large tiles compile without spills or a workspace", "[passes]") {
  const std::string reason = error_of([] { Nvrtc::instance(); });
  if (reason != "(no error)") {
    WARN("skipped: " << reason);
    return;
  }
  const Graph graph = run_passes(kernels::linear<f32, f32>({128, 128, 256}).graph());
  for (const Arch arch : {blackwell, Arch::sm_90a}) {
    INFO(arch.name());
    const KernelSource source = generate(graph, dense_variant(graph), arch);
    CHECK(source.workspace_bytes == 0);
    CHECK(source.plan.find("does not fit") == source.plan.npos);
    CHECK(compile_check(source, arch) == "");
  }
}

#ifdef TESSERA_HAS_EMULATOR
TEST_CASE("a generated kernel computes in strips", "[passes]") {
  const auto matmul = [](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), 32), cdiv(y.extent(1), 16));
    store(y, {m, n},
          kernels::matmul<f32>(x, w, m, n, {32, 16, 1200}) * 2 +
              mma(load(x, {m, 1}, {32, 1200}), load(w, {1, n}, {1200, 16}), zeros<f32>({32, 16})));
  };
  CHECK(is_split(matmul, Arch::sm_90a));
  const Kernel<In<f32, 2>, In<f32, 2>, Out<f32, 2>> kernel(graph_of(matmul));
  CHECK(run(kernel, 1300, false, emulated_device()) == run(kernel, 1300, false, Device::cpu()));
}
#endif

}  // namespace test_split_matmuls
