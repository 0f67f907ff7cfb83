// Interactions between two decisions of a plan that generated code must handle: kernels run on the test's device and on
// the CPU, which defines their results, with the same inputs.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <memory>
#include <random>
#include <sstream>
#include <vector>

#include "codegen/passes.hpp"
#include "codegen/prelude/identifier.hpp"
#include "codegen/prelude/prelude.hpp"
#include "fuzz/trial.hpp"
#include "jit/compile/nvrtc.hpp"
#include "support/catch.hpp"
#include "support/compiled_device.hpp"
#include "support/compiling.hpp"
#include "support/support.hpp"
#include "support/tensors.hpp"
#include "tessera/tessera.hpp"
#ifdef TESSERA_HAS_EMULATOR
#include "emulator/emulator.hpp"
#endif

namespace test_generated {

using namespace tessera::internal;

namespace {

/// The same tensor on the CPU and on the test's device.
template <Stored T, int R>
struct Twins {
  Tensor<T, R> cpu, device;
};

template <Stored T, int R>
Twins<T, R> twins(const std::array<std::int64_t, R>& extents, const std::vector<T>& values) {
  Twins<T, R> made{Tensor<T, R>(Device::cpu(), extents), tensor<T, R>(extents, values)};
  made.cpu.copy_from(values);
  return made;
}

/// Makes tensors of random numbers, also for outputs: elements that a kernel does not write must stay unchanged. Floats
/// are normal, integers between -1000 and 1000, and bytes those modulo 256. Each test has its own generator, and so
/// always the same numbers.
class Random {
 public:
  template <Stored T, int R>
  Twins<T, R> twins(const std::array<std::int64_t, R>& extents) {
    std::int64_t size = 1;
    for (const std::int64_t extent : extents) size *= extent;
    std::vector<T> values(static_cast<std::size_t>(size));
    for (T& value : values)
      if constexpr (std::is_integral_v<T>)
        value = static_cast<T>(std::uniform_int_distribution(-1000, 1000)(engine_));
      else
        value = T(std::normal_distribution<float>()(engine_));
    return test_generated::twins<T, R>(extents, values);
  }

 private:
  std::mt19937 engine_;
};

template <class K, class... T>
void run(const K& kernel, const T&... twins) {
  launch(Device::cpu().stream(), kernel, twins.cpu...);
  launch(test_device().stream(), kernel, twins.device...);
}

/// The norm of the difference over the norm of the CPU's result.
template <Stored T, int R>
double error(const Twins<T, R>& result) {
  const std::vector<T> expected = result.cpu.to_vector(), actual = result.device.to_vector();
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto x = static_cast<double>(expected[i]), y = static_cast<double>(actual[i]);
    difference += (x - y) * (x - y);
    norm += x * x;
  }
  REQUIRE(norm > 0);
  return std::sqrt(difference / norm);
}

/// For sums of so many random terms in f32, in any two orders: each partial sum may be wrong by half a unit in its last
/// place, and terms that cancel leave a sum smaller than they are.
double of_sums(int terms) { return std::pow(terms, 1.5) * 0x1p-23; }

/// For numbers rounded to bf16 so many times in a row: sums that differ slightly may round to neighbors.
double of_bf16(int times) { return times * 0x1p-8; }

}  // namespace

TEST_CASE("a carried value keeps the values that another was made of, in either order of assignment",
          "[cpu][emulated]") {
  Random random;
  const auto row = random.twins<f32, 1>({32});
  const auto check = [&](const auto& kernel) {
    const auto last = random.twins<f32, 1>({32});
    const auto rows = random.twins<f32, 2>({4, 32});
    run(kernel, row, last, rows);
    CHECK(error(last) == 0);
    CHECK(error(rows) == 0);
  };
  check(kernel("stretched_then_doubled", [](In<f32, 1> x, Out<f32, 1> last, Out<f32, 2> rows) {
    Var a = load(x, {0}, {32});
    Var b = zeros<f32>({4, 32});
    for ([[maybe_unused]] Index i : range(3)) {
      Tile stretched = broadcast(a, {4, 32});
      a = a * 2.0f;
      b = stretched;
    }
    store(last, {0}, a);
    store(rows, {0, 0}, b);
  }));
  check(kernel("doubled_then_stretched", [](In<f32, 1> x, Out<f32, 1> last, Out<f32, 2> rows) {
    Var b = zeros<f32>({4, 32});
    Var a = load(x, {0}, {32});
    for ([[maybe_unused]] Index i : range(3)) {
      b = broadcast(a, {4, 32});
      a = a * 2.0f;
    }
    store(last, {0}, a);
    store(rows, {0, 0}, b);
  }));
}

TEST_CASE("a loop accumulates onto a matmul whose layout differs from its own", "[cpu][emulated]") {
  Random random;
  const auto k = kernel("continued", [](In<f32, 2> x, In<f32, 2> w, In<f32, 2> u, In<f32, 2> v, Out<f32, 2> y) {
    Var acc = mma(load(x, {0, 0}, {1, 32}), load(w, {0, 0}, {32, 64}), zeros<f32>({1, 64}));
    for (Index i : range(cdiv(u.extent(1), 128)))
      acc = mma(load(u, {0, i}, {1, 128}), transpose(load(v, {0, i}, {64, 128})), acc);
    store(y, {0, 0}, acc);
  });
  const auto y = random.twins<f32, 2>({1, 64});
  run(k, random.twins<f32, 2>({1, 32}), random.twins<f32, 2>({32, 64}), random.twins<f32, 2>({1, 256}),
      random.twins<f32, 2>({64, 256}), y);
  CHECK(error(y) < of_sums(32 + 256));
}

TEST_CASE("a row is added to tiles too large for registers", "[cpu][emulated]") {
  Random random;
  for (const int columns : {32768, 131072}) {
    const auto k = kernel("large_row", [=](In<f32, 2> x, In<f32, 2> b, Out<f32, 2> y) {
      store(y, {0, 0}, load(x, {0, 0}, {4, columns}) + load(b, {0, 0}, {1, columns}));
    });
    const auto y = random.twins<f32, 2>({4, columns});
    run(k, random.twins<f32, 2>({4, columns}), random.twins<f32, 2>({1, columns}), y);
    CHECK(error(y) == 0);
  }
}

TEST_CASE("gathered rows are added to each part of a tile too large for registers", "[cpu][emulated]") {
  Random random;
  const auto k = kernel("large_gather", [](In<f32, 3> x, In<f32, 2> table, In<i32, 1> ids, Out<f32, 3> y) {
    store(y, {0, 0, 0}, load(x, {0, 0, 0}, {2, 512, 256}) + gather(table, load(ids, {0}, {512}), {0}, {256}));
  });
  std::vector<i32> ids(512);
  for (int i = 0; i < 512; ++i) ids[static_cast<std::size_t>(i)] = i * 7 % 41;  // some beyond the table's end
  const auto y = random.twins<f32, 3>({2, 512, 256});
  run(k, random.twins<f32, 3>({2, 512, 256}), random.twins<f32, 2>({37, 256}), twins<i32, 1>({512}, ids), y);
  CHECK(error(y) == 0);
}

TEST_CASE("gathered rows that fit in no memory are used twice among other reads", "[cpu][emulated]") {
  Random random;
  const auto check = [&](const auto& rows) {
    const auto k = kernel("gathered_twice", [&](In<f32, 2> x, In<f32, 2> w, In<i32, 1> ids, Out<f32, 2> y) {
      const Tile g = gather(w, rows(ids), {0}, {256});
      store(y, {0, 0}, load(x, {0, 0}, {256, 256}) + g + g);
    });
    const auto y = random.twins<f32, 2>({256, 256});
    run(k, random.twins<f32, 2>({256, 256}), random.twins<f32, 2>({256, 256}), twins<i32, 1>({1}, {11}), y);
    CHECK(error(y) == 0);
  };
  check([](const auto&) { return iota({256}, 0); });
  check([](const auto&) { return full<i32>({256}, 7); });
  check([](const auto& ids) { return broadcast(load(ids, {0}, {1}), {256}); });
}

TEST_CASE("a column is read by matmuls along each of its axes", "[cpu][emulated]") {
  Random random;
  const auto k = kernel("column", [](In<f32, 2> x, Out<f32, 2> y) {
    const Tile column = load(x, {0, 0}, {32, 1}), row = reshape(column, {1, 32});
    const Tile one = mma(column, row, zeros<f32>({32, 32})), two = mma(transpose(row), row, one);
    store(y, {0, 0}, mma(column, transpose(column), two));
  });
  const auto y = random.twins<f32, 2>({32, 32});
  run(k, random.twins<f32, 2>({32, 1}), y);
  CHECK(error(y) < of_sums(3));
}

TEST_CASE("either operand of a matmul is cast from a type of another size", "[cpu][emulated]") {
  Random random;
  const auto numbers = random.twins<i64, 2>({32, 32});
  const auto weights = random.twins<f32, 2>({32, 32});
  const auto y = random.twins<f32, 2>({32, 32});
  const auto left = kernel("i64_left", [](In<i64, 2> x, In<f32, 2> w, Out<f32, 2> y) {
    store(y, {0, 0}, mma(cast<f32>(load(x, {0, 0}, {32, 32})), load(w, {0, 0}, {32, 32}), zeros<f32>({32, 32})));
  });
  run(left, numbers, weights, y);
  CHECK(error(y) < of_sums(32));
  const auto right = kernel("i64_right", [](In<f32, 2> w, In<i64, 2> x, Out<f32, 2> y) {
    store(y, {0, 0}, mma(load(w, {0, 0}, {32, 32}), cast<f32>(load(x, {0, 0}, {32, 32})), zeros<f32>({32, 32})));
  });
  run(right, weights, numbers, y);
  CHECK(error(y) < of_sums(32));
}

TEST_CASE("each cast of an operand of a matmul counts", "[cpu][emulated]") {
  Random random;
  const auto k = kernel("i32_u8_f32", [](In<i32, 2> x, In<f32, 2> w, Out<f32, 2> y) {
    Tile bytes = cast<u8>(load(x, {0, 0}, {32, 32}));
    store(y, {0, 0}, mma(cast<f32>(bytes), load(w, {0, 0}, {32, 32}), zeros<f32>({32, 32})));
  });
  const auto y = random.twins<f32, 2>({32, 32});
  run(k, random.twins<i32, 2>({32, 32}), random.twins<f32, 2>({32, 32}), y);
  CHECK(error(y) < of_sums(32));
}

TEST_CASE("a reshape drops an axis that was distributed over lanes", "[cpu][emulated]") {
  Random random;
  const auto x = random.twins<bf16, 2>({32, 16});
  const auto w = random.twins<bf16, 2>({16, 1});
  SECTION("to a column vector") {
    const auto y = random.twins<f32, 1>({32});
    const auto k = kernel("column", [](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 1> y) {
      Tile p = mma(load(x, {0, 0}, {32, 16}), load(w, {0, 0}, {16, 1}), zeros<f32>({32, 1}));
      store(y, {0}, reshape(p, {32}) * 2.0f);
    });
    run(k, x, w, y);
    CHECK(error(y) < of_sums(16));
  }
  SECTION("to a row vector") {
    const auto y = random.twins<f32, 1>({256}), z = random.twins<f32, 1>({256});
    const auto k = kernel("row", [](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 1> y, Out<f32, 1> z) {
      Tile p = mma(load(x, {0, 0}, {1, 128}), load(w, {0, 0}, {128, 256}), zeros<f32>({1, 256}));
      store(y, {0}, reshape(p, {256}) * 2.0f);
      store(z, {0}, reshape(sum(p, 1), {1}) + reshape(p, {256}));
    });
    run(k, random.twins<bf16, 2>({1, 128}), random.twins<bf16, 2>({128, 256}), y, z);
    CHECK(error(y) < of_sums(128));
    CHECK(error(z) < of_sums(128 + 256));
  }
  SECTION("to one number that all threads need") {
    const auto y = random.twins<f32, 1>({64});
    const auto k = kernel("total", [](In<bf16, 2> x, In<bf16, 2> w, In<f32, 1> z, Out<f32, 1> y) {
      Tile p = mma(load(x, {0, 0}, {32, 16}), load(w, {0, 0}, {16, 1}), zeros<f32>({32, 1}));
      store(y, {0}, load(z, {0}, {64}) + reshape(sum(p, 0), {1}));
    });
    run(k, x, w, random.twins<f32, 1>({64}), y);
    CHECK(error(y) < of_sums(16 * 32));
  }
  SECTION("and makes the column a row of the next matmul") {
    const auto y = random.twins<f32, 2>({1, 16});
    const auto z = random.twins<f32, 1>({1});
    const auto k = kernel("transposed", [](In<bf16, 2> x, In<bf16, 2> w, In<bf16, 2> v, Out<f32, 2> y, Out<f32, 1> z) {
      Tile p = mma(load(x, {0, 0}, {32, 16}), load(w, {0, 0}, {16, 1}), zeros<f32>({32, 1}));
      Tile row = cast<bf16>(reshape(p, {1, 32}));
      store(y, {0, 0}, mma(row, load(v, {0, 0}, {32, 16}), zeros<f32>({1, 16})));
      store(z, {0}, reshape(sum(p, 0), {1}));
    });
    run(k, x, w, random.twins<bf16, 2>({32, 16}), y, z);
    CHECK(error(y) < of_sums(16 + 32) + of_bf16(1));
    CHECK(error(z) < of_sums(16 * 32));
  }
}

TEST_CASE("a loop reuses more right operands than shared memory holds", "[cpu][emulated]") {
  Random random;
  const auto k = kernel("chain", [](In<bf16, 2> x, In<bf16, 3> w, Out<f32, 2> y) {
    std::vector<Tile<bf16, 2>> weights;
    for (int i = 0; i < 6; ++i) weights.push_back(reshape(load(w, {i, 0, 0}, {1, 144, 144}), {144, 144}));
    const auto times = [&](const Tile<bf16, 2>& p, std::size_t i) {
      return Tile(cast<bf16>(0.1f * mma(p, weights[i], zeros<f32>({16, 144}))));
    };
    for (Index m : range(cdiv(x.extent(0), 16))) {
      Tile p = times(times(times(times(times(load(x, {m, 0}, {16, 144}), 0), 1), 2), 3), 4);
      store(y, {m, 0}, mma(p, weights[5], zeros<f32>({16, 144})));
    }
  });
  const auto y = random.twins<f32, 2>({32, 144});
  run(k, random.twins<bf16, 2>({32, 144}), random.twins<bf16, 3>({6, 144, 144}), y);
  CHECK(error(y) < of_sums(144) + of_bf16(5));
}

TEST_CASE("a hundred carried values are permuted", "[cpu][emulated]") {
  Random random;
  const auto k = kernel("places", [](In<f32, 2> x, Out<f32, 2> y) {
    std::vector<std::unique_ptr<Var<f32, 2>>> carried;
    for (int i = 0; i < 100; ++i) carried.push_back(std::make_unique<Var<f32, 2>>(load(x, {i, 0}, {1, 8})));
    for ([[maybe_unused]] Index r : range(x.extent(0) - 100)) {
      std::vector<Tile<f32, 2>> before;
      for (const auto& value : carried) before.push_back(*value);
      for (std::size_t i = 0; i < 100; ++i) *carried[i] = before[(i * 37 + 1) % 100];
    }
    for (int i = 0; i < 100; ++i) store(y, {i, 0}, *carried[static_cast<std::size_t>(i)]);
  });
  for (const int rounds : {0, 3}) {
    const auto y = random.twins<f32, 2>({100, 9});  // no two of its elements are neighbors in memory
    run(k, random.twins<f32, 2>({100 + rounds, 9}), y);
    CHECK(error(y) == 0);
  }
}

TEST_CASE("persistent CTAs keep large tiles in their workspace and read again what they wrote", "[cpu][emulated]") {
  Random random;
  const auto k = kernel("workspace", [](In<f32, 2> x, InOut<f32, 2> y) {
    Index b = blocks(cdiv(x.extent(0), 256));
    store(y, {0, b}, transpose(load(x, {b, 0}, {256, 1024})));
    Tile c = load(y, {0, b}, {1024, 256});
    Tile sums = cumsum(c, 0) + cumsum(c, 1);
    store(y, {0, b}, sums - max(sums, Axis(0)));
  });
  const Graph graph = run_passes(k.executable().graph());
  const KernelSource source = generate(graph, dense_variant(graph), Arch::sm_90a);
  CHECK(source.workspace_bytes > 0);
  CHECK(source.persistent);
  const auto y = random.twins<f32, 2>({1000, 700});  // ragged
  run(k, random.twins<f32, 2>({700, 1000}), y);
  CHECK(error(y) < of_sums(1024));
}

TEST_CASE("numbers of 1 and 8 bytes and predicates are exchanged between threads", "[cpu][emulated]") {
  Random random;
  const auto k = kernel("small_types", [](In<i64, 2> x, In<u8, 2> u, Out<i64, 2> y, Out<u8, 2> z, Out<u8, 2> t) {
    Tile a = load(x, {0, 0}, {24, 40});
    Tile bytes = load(u, {0, 0}, {24, 40});
    Tile above = transpose(a > cast<i64>(bytes));
    store(y, {0, 0}, transpose(where(above, transpose(a), cumsum(transpose(a), 0))));
    store(z, {0, 0}, cast<u8>(transpose(above)));
    store(t, {0, 0}, transpose(bytes));
  });
  const auto y = random.twins<i64, 2>({24, 40});
  const auto z = random.twins<u8, 2>({24, 40}), t = random.twins<u8, 2>({40, 24});
  run(k, random.twins<i64, 2>({24, 40}), random.twins<u8, 2>({24, 40}), y, z, t);
  CHECK(error(y) == 0);
  CHECK(error(z) == 0);
  CHECK(error(t) == 0);
}

TEST_CASE("the largest tiles are planned", "[generate]") {
  constexpr int most = 1 << 30;
  const auto plans = [](const auto& function) {
    const Graph graph = run_passes(trace_kernel("largest", function));
    for (const char* arch : {"sm_80", "sm_90a"})
      CHECK(generate(graph, dense_variant(graph), Arch::parse(arch), {.verify = true}).threads > 0);
  };
  for (const Shape& shape :
       {Shape{most}, Shape{1, most}, Shape{most - 1, 1}, Shape{32769, 32767}, Shape{3, 357913941}}) {
    INFO(to_string(shape));
    const std::vector<int> extents(shape.begin(), shape.end());
    if (shape.rank() == 1)
      plans([=](In<u8, 1> x, Out<u8, 1> y) { store(y, {0}, load(x, {0}, {extents[0]})); });
    else
      plans([=](In<u8, 2> x, Out<u8, 2> y) { store(y, {0, 0}, load(x, {0, 0}, {extents[0], extents[1]})); });
  }
  plans([](In<u8, 1> x, Out<i32, 1> y) { store(y, {0}, sum(cast<i32>(load(x, {0}, {most})), 0)); });
  plans([](Out<i32, 1> y) { store(y, {0}, max(iota({most}, 0), axis(0))); });
  plans([](In<u8, 1> x, Out<i32, 1> y) { store(y, {0}, sum(cast<i32>(iota({most}, 0) < x.extent(0)), 0)); });
  plans([](In<i32, 1> x, Out<i32, 1> y) { store(y, {0}, histogram(load(x, {0}, {64}), most)); });
  plans([](In<f64, 2> x, Out<f64, 2> y) { store(y, {0, 0}, transpose(load(x, {0, 0}, {1 << 15, 1 << 15}))); });
}

TEST_CASE("names that the text does not use are not declared", "[nvrtc]") {
  const auto of = [](const auto& kernel) {
    const Graph graph = run_passes(kernel.graph());
    return generate(graph, dense_variant(graph), Arch::sm_90a);
  };
  const auto folded = kernel("folded", [](InOut<f32, 2> z) {
    scatter(z, histogram(full<i32>({2}, 1), 1, 0), {0}, full<f32>({1, 1}, 1.0f));
  });
  const KernelSource source = of(folded);
  CHECK(source.text.find("const int t0") == source.text.npos);
  CHECK(source.text.find("const int lane = ") != source.text.npos);
  if (nvrtc_here()) CHECK(compile_check(source, Arch::sm_90a) == "");
}

TEST_CASE("a kernel may have a name that CUDA C++ uses for something else", "[nvrtc]") {
  if (!nvrtc_here()) return;
  for (const char* name : {"exp", "round", "float", "std", "main", "memory", "u8"}) {
    const Graph graph = run_passes(trace_kernel(name, [](In<f32, 1> x, Out<f32, 1> y) {
      Index b = blocks(cdiv(y.extent(0), 4096));
      Tile row = exp(load(x, {b}, {4096}));
      store(y, {b}, row / sum(row, 0));
    }));
    CHECK(compile_check(generate(graph, dense_variant(graph), Arch::sm_90a), Arch::sm_90a) == "");
  }
}

TEST_CASE("a kernel may have any name that C++ allows, and words of CUDA C++ as well", "[nvrtc]") {
  CHECK(kernel_identifier("softmax") == "k_softmax");
  CHECK(kernel_identifier("two words") == "k_two_words");
  for (const PreludeItem& item : prelude_items()) CHECK_FALSE(item.name.starts_with("k_"));
  if (!nvrtc_here()) return;
  std::istringstream names(
      "_ __ _x for and_eq co_await main memory block first_block workspace NULL dim3 size_t std threadIdx warpSize abs "
      "fmaxf j0 malloc printf CUDART_VERSION CUDARTAPI NV_IF_TARGET __assert_fail _Pragma cudaError_t CUDA_R_32F "
      "CUuuid MAJOR_VERSION A7 WARP_SZ function_name inlined_at Window u32 shuffle_xor");
  std::string text;
  for (std::string name; names >> name;)
    text += fmt::format("extern \"C\" __global__ void {}() {{}}\n", kernel_identifier(name));
  CHECK(error_of([&] { Nvrtc::instance().compile({.source = text, .kernel = "names", .arch = Arch::sm_90a}); }) ==
        "(no error)");
}

#ifdef TESSERA_HAS_EMULATOR
TEST_CASE("a grid may take several launches", "[emulator][planted]") {
  const auto grouped = kernel("grouped", [](In<f32, 2> a, In<f32, 2> b, Out<f32, 2> c) {
    auto [i, j, h] = blocks(9, 3, 2);  // a group of eight rows and a partial one
    Var sums = zeros<f32>({16, 16});
    for (Index r : range(2)) sums = mma(load(a, {i, h * 2 + r}, {16, 16}), load(b, {h * 2 + r, j}, {16, 16}), sums);
    store(c, {h * 9 + i, j}, sums);
  });
  const auto in_turn = kernel("in_turn", [](Scalar<i32> n, Scalar<i32>, Out<i32, 2> c) {
    auto [i, j, k] = blocks(2, 3, 4);
    store(c, {i * 3 + j, k}, full<i32>({1, 1}, 0) + i * 100 + j * 10 + k * n);
  });
  const fuzz::Trial trials[] = {
      {grouped.graph(), std::vector<fuzz::Given>{{.extents = {144, 64}}, {.extents = {64, 48}}, {.extents = {288, 48}}},
       1},
      {in_turn.graph(), std::vector<fuzz::Given>{{.scalar = 1}, {}, {.extents = {6, 4}}}, 1}};
  for (const fuzz::Trial& trial : trials)
    for (const bool wide : {false, true}) {
      const auto failure = trial.check("emulated", [&](fuzz::Memory& memory) -> std::optional<fuzz::Failure> {
        const Graph graph = run_passes(trial.graph());
        Variant variant = classify(graph, memory.arguments());
        variant.index64 = wide;
        const KernelSource source = generate(graph, variant, Arch::sm_90a);
        CHECK((source.text.find("grouped(block % ") != source.text.npos) == (&trial == trials));
        const Emulator emulator = Emulator::compile(std::array{source});
        CHECK(emulator.run(0, graph, memory.arguments(), trial.grid(), {}).text() == "");
        return {};
      });
      INFO(trial.graph().name << (wide ? ", wide: " : ": ") << (failure ? failure->text : ""));
      CHECK_FALSE(failure);
    }
}
#endif

}  // namespace test_generated
