// Tests for cases that planted faults (scripts/mutants) showed to be untested. Numbers are small integers, so that sums
// are exact.
#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/generate.hpp"
#include "codegen/passes.hpp"
#include "jit/compile/cache_key.hpp"
#include "support/catch.hpp"
#include "tessera/tessera.hpp"

#include "codegen/passes.hpp"
#include "emulator/mapping.hpp"
#include "jit/compile/cache_key.hpp"
#include "support/tensors.hpp"

namespace test_mutants {

using namespace tessera::internal;

namespace {

/// Integers from -4 to 4.
template <Stored T, int R>
Tensor<T, R> small_numbers(const Device& device, const std::array<std::int64_t, R>& extents, unsigned seed) {
  std::mt19937 engine(seed);
  const Tensor<T, R> made(device, extents);
  std::vector<T> values(made.to_vector().size());
  for (T& value : values) value = stored<T>(std::uniform_int_distribution(-4, 4)(engine));
  made.copy_from(values);
  return made;
}

/// Rows so far apart that little of the memory between them is ever resident.
template <Stored T>
struct FarRows {
  FarRows(const Device& device, std::int64_t count, std::int64_t length, std::int64_t apart) {
    const auto bytes = static_cast<std::size_t>((count - 1) * apart + length) * sizeof(T);
    if (device.shares_host_memory()) {
      const auto mapping = std::make_shared<emulator::Mapping>(bytes);
      memory = {mapping, mapping->data()};
    } else {
      memory = device.allocate(bytes);
    }
    tensor = Tensor<T, 2>(device, static_cast<T*>(memory.get()), {count, length}, {apart, 1}, memory);
  }
  T* row(std::int64_t i) const { return tensor.data() + i * tensor.strides()[0]; }

  std::shared_ptr<void> memory;
  Tensor<T, 2> tensor;
};

/// The result of run(device) is the same on the CPU and the test's device.
template <class Run>
void check_same(const Run& run) {
  const auto got = run(test_device()), expected = run(Device::cpu());
  if (got.size() <= 8192)
    CHECK(got == expected);
  else
    CHECK((got == expected));  // the values would be too many to print
}

}  // namespace

TEST_CASE("written or accumulated values are visible to later reads, and not to earlier ones",
          "[cpu][emulated][planted]") {
  const auto check = [](const auto& write) {
    const auto k = kernel("written", [&](InOut<i32, 2> x, Out<i32, 2> before, Out<i32, 2> others, Out<i32, 2> after) {
      const Tile first = load(x, {0, 0}, {8, 40});
      write(x, first);
      const Tile rows = load(x, {1, 0}, {3, 40});  // by other threads than those that wrote
      const Tile second = load(x, {0, 0}, {8, 40});
      store(before, {0, 0}, first);
      store(others, {0, 0}, rows);
      store(after, {0, 0}, second);
    });
    const auto zeros = [](std::int64_t rows) {
      return tensor<i32, 2>({rows, 40}, std::vector<i32>(static_cast<std::size_t>(rows) * 40));
    };
    const auto x = tensor<i32, 2>({8, 40}, numbered<i32>(320)), before = zeros(8), others = zeros(3), after = zeros(8);
    launch(test_device().stream(), k, x, before, others, after);
    CHECK(before.to_vector() == numbered<i32>(320));
    CHECK(others.to_vector() == numbered<i32>(120, 1120));
    CHECK(after.to_vector() == numbered<i32>(320, 1000));
  };
  check([](const auto& x, const auto& old) { store(x, {0, 0}, old + 1000); });
  check([](const auto& x, const auto&) { atomic_add(x, {0, 0}, full<i32>({8, 40}, 1000)); });
}

TEST_CASE("computed operands of a matmul, of fewer elements than threads or beside unused positions of a layout",
          "[cpu][emulated][planted]") {
  const auto check = [](auto type, int k) {
    using T = decltype(type);
    const auto product = kernel("computed", [=](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {
      const Tile a = cast<T>(load(x, {0, 0}, {16, k}) + 1.0f), b = cast<T>(load(w, {0, 0}, {k, 16}) - 2.0f);
      store(y, {0, 0}, mma(a, b, zeros<f32>({16, 16})));
    });
    check_same([&](const Device& device) {
      const Tensor<f32, 2> y(device, {16, 16});
      launch(device.stream(), product, small_numbers<f32, 2>(device, {16, k}, 1),
             small_numbers<f32, 2>(device, {k, 16}, 2), y);
      return y.to_vector();
    });
  };
  for (const int k : {4, 20}) {
    check(f32{}, k);
    check(bf16{}, k);
  }
}

TEST_CASE("sums along an axis, over iterations of warps with neighboring lanes", "[cpu][emulated][planted]") {
  const auto check = [](auto type, int rows, int columns, int axis) {
    using T = decltype(type);
    CAPTURE(rows, columns, axis);
    const auto k = kernel(
        "scan", [=](In<T, 2> x, Out<T, 2> y) { store(y, {0, 0}, cumsum(load(x, {0, 0}, {rows, columns}) * 2, axis)); });
    check_same([&](const Device& device) {
      const Tensor<T, 2> y(device, {rows, columns});
      launch(device.stream(), k, small_numbers<T, 2>(device, {rows, columns}, 1), y);
      return y.to_vector();
    });
  };
  check(f32{}, 1, 4096, 1);  // warps with all lanes in one line, in several iterations
  check(i64{}, 1, 3000, 1);
  check(f32{}, 2, 600, 1);   // warps with two lines
  check(f32{}, 256, 16, 0);  // lanes with several lines, over warps
  check(i32{}, 300, 40, 0);
  check(i32{}, 3, 333, 1);  // one element per access
  check(f32{}, 32, 96, 1);  // several iterations of a warp
  check(f32{}, 1, 9, 1);
  check(f32{}, 1, 50257, 1);  // in memory
}

TEST_CASE("transposed tiles at the edges of their tensors", "[cpu][emulated][planted]") {
  const auto check = [](auto from, auto to, std::int64_t rows, std::int64_t columns) {
    using From = decltype(from);
    using To = decltype(to);
    CAPTURE(rows, columns);
    const auto k = kernel("turn", [](In<From, 2> x, In<To, 2> z, Out<To, 2> y) {
      auto [i, j] = blocks(cdiv(x.extent(0), 32), cdiv(x.extent(1), 64));
      const Tile t = cast<f32>(transpose(load(x, {i, j}, {32, 64}))) + 1.0f;
      store(y, {j, i}, cast<To>(t + cast<f32>(load(z, {j, i}, {64, 32}))));
    });
    check_same([&](const Device& device) {
      const Tensor<To, 2> y(device, {columns, rows});
      launch(device.stream(), k, small_numbers<From, 2>(device, {rows, columns}, 1),
             small_numbers<To, 2>(device, {columns, rows}, 2), y);
      const std::vector<To> values = y.to_vector();
      return std::vector<float>(values.begin(), values.end());
    });
  };
  check(bf16{}, bf16{}, 72, 136);
  check(bf16{}, f32{}, 40, 72);
  check(f32{}, bf16{}, 40, 72);
  check(f32{}, f32{}, 33, 70);  // no whole vectors along some axis
}

TEST_CASE("large tiles of ragged tensors, with and without whole vectors", "[cpu][emulated][planted]") {
  const auto k = kernel("large", [](In<f32, 2> x, In<f32, 2> w, InOut<f32, 2> y) {
    const Tile old = load(y, {0, 0}, {4, 32768}, 7.0f);
    store(y, {0, 0}, load(x, {0, 0}, {4, 32768}, 5.0f) + load(w, {0, 0}, {1, 32768}, 3.0f) * old);
  });
  for (const std::int64_t columns : {32000, 31999})
    check_same([&](const Device& device) {
      const auto y = small_numbers<f32, 2>(device, {4, 32752}, 3);
      launch(device.stream(), k, small_numbers<f32, 2>(device, {3, columns}, 1),
             small_numbers<f32, 2>(device, {1, columns}, 2), y);
      return y.to_vector();
    });
}

TEST_CASE("ragged operands that shared memory has no space for", "[cpu][emulated][planted]") {
  const auto k = kernel("chain", [](In<bf16, 2> x, In<bf16, 3> w, Out<f32, 2> y) {
    std::vector<Tile<bf16, 2>> weights;
    for (int i = 0; i < 6; ++i) weights.push_back(reshape(load(w, {i, 0, 0}, {1, 144, 144}), {144, 144}));
    const auto times = [&](const Tile<bf16, 2>& p, std::size_t i) {
      return Tile(cast<bf16>(mma(p, weights[i], zeros<f32>({16, 144}))));
    };
    for (Index m : range(cdiv(x.extent(0), 16))) {
      Tile p = times(times(times(times(times(load(x, {m, 0}, {16, 144}), 0), 1), 2), 3), 4);
      store(y, {m, 0}, mma(p, weights[5], zeros<f32>({16, 144})));
    }
  });
  const Graph graph = run_passes(k.executable().graph());
  const KernelSource source = generate(graph, dense_variant(graph), Arch::sm_90a);
  CHECK(source.workspace_bytes > 0);
  CHECK(source.shared_bytes <= Arch::sm_90a.shared_bytes());
  std::vector<bf16> turns(6 * 140 * 128);  // each matrix moves the columns by one
  for (std::size_t i = 0; i < 6; ++i)
    for (std::size_t row = 0; row < 140; ++row) turns[(i * 140 + row) * 128 + (row + 1) % 128] = bf16(1.0f);
  check_same([&](const Device& device) {
    const Tensor<bf16, 3> w(device, {6, 140, 128});
    w.copy_from(turns);
    const Tensor<f32, 2> y(device, {32, 144});
    launch(device.stream(), k, small_numbers<bf16, 2>(device, {31, 138}, 1), w, y);
    return y.to_vector();
  });
}

TEST_CASE("an infinity among NaN is the largest", "[cpu][emulated][planted]") {
  const auto k = kernel("infinity", [](In<f32, 2> x, Out<i32, 1> y) {
    store(y, {0}, reshape(argmax(load(x, {0, 0}, {4, 70}), 1), {4}));
  });
  std::vector<f32> values(4 * 70, NAN);
  const std::vector<i32> at{3, 68, 33, 0};
  for (std::size_t row = 0; row < 3; ++row) values[row * 70 + static_cast<std::size_t>(at[row])] = -INFINITY;
  const auto y = tensor<i32, 1>({4}, std::vector<i32>(4, -1));
  launch(test_device().stream(), k, tensor<f32, 2>({4, 70}, values), y);
  CHECK(y.to_vector() == at);
}

TEST_CASE("a matmul of tf32 whose left operand is a matmul", "[cpu][emulated][planted]") {
  const auto k = kernel("scores", [](In<f32, 2> x, In<f32, 2> w, In<f32, 2> v, Out<f32, 2> y) {
    const auto part = [](const auto& view, int rows, int columns) {
      return cast<tf32>(load(view, {0, 0}, {rows, columns}));
    };
    const Tile scores = mma(part(x, 32, 16), part(w, 16, 24), zeros<f32>({32, 24}));
    store(y, {0, 0}, mma(cast<tf32>(scores), part(v, 24, 40), zeros<f32>({32, 40})));
  });
  check_same([&](const Device& device) {
    const Tensor<f32, 2> y(device, {32, 40});
    launch(device.stream(), k, small_numbers<f32, 2>(device, {32, 16}, 1), small_numbers<f32, 2>(device, {16, 24}, 2),
           small_numbers<f32, 2>(device, {24, 40}, 3), y);
    return y.to_vector();
  });
}

TEST_CASE("a tile far outside of its tensor is padding", "[cpu][emulated][planted]") {
  const auto k = kernel("far", [](In<i32, 1> x, Out<i32, 1> y, Scalar<i32> n) {
    store(y, {0}, load(x, {n}, {16}, -1));
    store(y, {n}, full<i32>({16}, 5));
  });
  const auto x = tensor<i32, 1>({16}, numbered<i32>(16)), y = tensor<i32, 1>({16}, std::vector<i32>(16));
  launch(test_device().stream(), k, x, y, 1 << 28);  // 2^32 elements from the first
  CHECK(y.to_vector() == std::vector<i32>(16, -1));
}

TEST_CASE("vectors beyond a tensor are padding", "[cpu][emulated][planted]") {
  const auto check = [](auto number) {
    using T = decltype(number);
    const auto k = kernel("pad", [](In<T, 2> x, InOut<T, 2> y, Out<T, 2> z) {
      store(z, {0, 0}, load(x, {0, 0}, {16, 32}, 7));
      const Tile read = load(y, {0, 0}, {16, 32}, 5);
      store(z, {1, 0}, read);
    });
    const auto x = tensor<T, 2>({9, 16}, std::vector<T>(144, T(1))),
               y = tensor<T, 2>({9, 16}, std::vector<T>(144, T(2)));
    const auto z = tensor<T, 2>({32, 32}, std::vector<T>(1024));
    launch(test_device().stream(), k, x, y, z);
    const std::vector<T> found = z.to_vector();
    for (int i = 0; i < 1024; ++i) {
      const bool inside = i / 32 % 16 < 9 && i % 32 < 16;
      CAPTURE(i);
      REQUIRE(static_cast<float>(found[static_cast<std::size_t>(i)]) == (inside ? i < 512 ? 1 : 2 : i < 512 ? 7 : 5));
    }
  };
  check(f32());
  check(bf16());
  check(f16());
  check(i32());
  check(i64());
  check(u8());
}

TEST_CASE("strides of large tensors are 64-bit", "[cpu][emulated][planted]") {
  const auto k = kernel("copy", [](In<i32, 2> x, Out<i32, 2> y) { store(y, {0, 0}, load(x, {0, 0}, {2, 8})); });
  const auto memory = tensor<i32, 1>({5}, numbered<i32>(5));
  const Tensor<i32, 2> x(test_device(), memory.data(), {1, 5}, {std::int64_t(1) << 33, 1});
  const auto y = tensor<i32, 2>({1, 5}, std::vector<i32>(5, -1));
  launch(test_device().stream(), k, x, y);
  CHECK(y.to_vector() == numbered<i32>(5));
  const Graph graph = run_passes(k.executable().graph());
  Variant variant = dense_variant(graph);
  CHECK(generate(graph, variant, Arch::sm_90a).text.find(" int in0_stride0") != std::string::npos);
  variant.index64 = true;
  CHECK(generate(graph, variant, Arch::sm_90a).text.find(" i64 in0_stride0") != std::string::npos);
}

TEST_CASE("a loop prefetches tiles of fewer pieces than threads", "[cpu][emulated][planted]") {
  const auto k = kernel("pieces", [](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {
    Var sums = zeros<f32>({24, 40});
    for (Index i : range(cdiv(x.extent(1), 20))) sums = mma(load(x, {0, i}, {24, 20}), load(w, {i, 0}, {20, 40}), sums);
    store(y, {0, 0}, sums);
  });
  check_same([&](const Device& device) {
    const Tensor<f32, 2> y(device, {24, 40});
    launch(device.stream(), k, small_numbers<f32, 2>(device, {24, 96}, 1), small_numbers<f32, 2>(device, {96, 40}, 2),
           y);
    return y.to_vector();
  });
}

TEST_CASE("a matmul of few rows whose operands are computed", "[cpu][emulated][planted]") {
  const auto k = kernel("thin", [](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {
    const Tile a = load(x, {0, 0}, {4, 18}) + 1.0f, b = load(w, {0, 0}, {18, 40}) + 2.0f;
    store(y, {0, 0}, mma(a, b, zeros<f32>({4, 40})));
  });
  check_same([&](const Device& device) {
    const Tensor<f32, 2> y(device, {4, 40});
    launch(device.stream(), k, small_numbers<f32, 2>(device, {4, 18}, 1), small_numbers<f32, 2>(device, {18, 40}, 2),
           y);
    return y.to_vector();
  });
}

TEST_CASE("atomic sums and scatters over rows of whole vectors", "[cpu][emulated][planted]") {
  const auto k = kernel("rows", [](In<f32, 2> x, In<i32, 1> rows, InOut<f32, 2> sums, InOut<f32, 2> scattered) {
    Index b = blocks(cdiv(x.extent(0), 4));
    const Tile part = load(x, {b, 0}, {4, 64});
    atomic_add(sums, {0, 0}, part);
    scatter(scattered, load(rows, {b}, {4}), {0}, part * 0.0f + 7.0f);  // some rows twice
  });
  check_same([&](const Device& device) {
    const Tensor<i32, 1> rows(device, {8});
    rows.copy_from(std::vector<i32>{5, 0, 9, 5, -1, 7, 5, 0});
    const auto sums = small_numbers<f32, 2>(device, {4, 64}, 1), scattered = small_numbers<f32, 2>(device, {8, 64}, 2);
    launch(device.stream(), k, small_numbers<f32, 2>(device, {8, 64}, 3), rows, sums, scattered);
    std::vector<f32> all = sums.to_vector();
    for (const f32 value : scattered.to_vector()) all.push_back(value);
    return all;
  });
}

TEST_CASE("a matmul with a tile of zeros propagates NaN", "[cpu][emulated][planted]") {
  const auto k = kernel("zeros", [](In<f32, 1> x, Out<f32, 1> y, Out<f32, 1> z) {
    store(y, {0}, load(x, {0}, {4}) * zeros<f32>({4}));
    store(z, {0}, zeros<f32>({4}) * load(x, {0}, {4}));
  });
  const auto x = tensor<f32, 1>({4}, {NAN, INFINITY, -INFINITY, -1}), y = tensor<f32, 1>({4}, std::vector<f32>(4)),
             z = tensor<f32, 1>({4}, std::vector<f32>(4));
  launch(test_device().stream(), k, x, y, z);
  for (const auto& result : {y.to_vector(), z.to_vector()}) {
    for (std::size_t i = 0; i < 3; ++i) CHECK(std::isnan(result[i]));
    CHECK((result[3] == 0 && std::signbit(result[3])));
  }
}

TEST_CASE("constants are selected, and zero is added", "[cpu][emulated][planted]") {
  const auto k = kernel("constants", [](In<f32, 1> x, Out<f32, 2> y) {
    const auto row = [](float value) { return full<f32>({1, 4}, value); };
    store(y, {0, 0}, where(full<f32>({1, 4}, 3) > 2.0f, row(5), row(6)));
    store(y, {1, 0}, where(full<f32>({1, 4}, 3) < 2.0f, row(5), row(6)));
    store(y, {2, 0}, reshape(load(x, {0}, {4}) + zeros<f32>({4}), {1, 4}));
  });
  const auto x = tensor<f32, 1>({4}, {-0.0f, -0.0f, 1, 2});
  const auto y = tensor<f32, 2>({3, 4}, std::vector<f32>(12));
  launch(test_device().stream(), k, x, y);
  CHECK(y.to_vector() == std::vector<f32>{5, 5, 5, 5, 6, 6, 6, 6, 0, 0, 1, 2});
  CHECK_FALSE(std::signbit(y.to_vector()[8]));
}

TEST_CASE("rows and columns of a matmul of which each thread holds many", "[cpu][emulated][planted]") {
  const auto check = [](auto type) {
    using T = decltype(type);
    const auto k = kernel("many", [](In<T, 2> x, In<T, 2> w, Out<f32, 2> y) {
      const Tile p = mma(load(x, {0, 0}, {128, 16}), load(w, {0, 0}, {16, 128}), zeros<f32>({128, 128}));
      store(y, {0, 0}, (p - max(p, 1)) * 1000.0f + (p - max(p, Axis(0))));
    });
    check_same([&](const Device& device) {
      const Tensor<f32, 2> y(device, {128, 128});
      launch(device.stream(), k, small_numbers<T, 2>(device, {128, 16}, 1), small_numbers<T, 2>(device, {16, 128}, 2),
             y);
      return y.to_vector();
    });
  };
  check(bf16{});
  check(f32{});
}

TEST_CASE("a loop multiplies values that the previous iteration has written", "[cpu][emulated][planted]") {
  const auto k = kernel("written", [](InOut<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {
    Var sums = zeros<f32>({16, 16});
    for (Index i : range(x.extent(0) / 16 - 1)) {
      const Tile part = load(x, {i, 0}, {16, 16});
      sums = mma(part, load(w, {i, 0}, {16, 16}), sums);
      store(x, {i + 1, 0}, minimum(sums, 3.0f));
    }
    store(y, {0, 0}, sums);
  });
  check_same([&](const Device& device) {
    const Tensor<f32, 2> y(device, {16, 16});
    launch(device.stream(), k, small_numbers<f32, 2>(device, {96, 16}, 1), small_numbers<f32, 2>(device, {96, 16}, 2),
           y);
    return y.to_vector();
  });
}

TEST_CASE("an accumulator is read before the next matmul is added", "[cpu][emulated][planted]") {
  for (const int rows : {16, 2}) {
    const auto k = kernel("before", [=](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {
      Var sums = zeros<f32>({rows, 16});
      Var before = zeros<f32>({rows, 16});
      for (Index i : range(x.extent(1) / 64)) {
        const Tile old = sums;
        sums = mma(load(x, {0, i}, {rows, 64}), load(w, {i, 0}, {64, 16}), sums);
        before = before * 3.0f + old;
      }
      store(y, {0, 0}, sums + before * 1000.0f);
    });
    check_same([&](const Device& device) {
      const Tensor<f32, 2> y(device, {rows, 16});
      launch(device.stream(), k, small_numbers<f32, 2>(device, {rows, 192}, 1),
             small_numbers<f32, 2>(device, {192, 16}, 2), y);
      return y.to_vector();
    });
  }
}

TEST_CASE("a carried tile of three axes is transposed in each iteration", "[cpu][emulated][planted]") {
  const auto k = kernel("transposed", [](In<f32, 3> x, Out<f32, 3> y, Scalar<i32> n) {
    Var t = load(x, {0, 0, 0}, {8, 8, 8});
    for ([[maybe_unused]] Index i : range(n)) t = permute(t, {1, 2, 0});
    store(y, {0, 0, 0}, t);
  });
  check_same([&](const Device& device) {
    const Tensor<f32, 3> y(device, {8, 8, 8});
    launch(device.stream(), k, small_numbers<f32, 3>(device, {8, 8, 8}, 1), y, 2);
    return y.to_vector();
  });
}

TEST_CASE("a layout exchange in a loop without iterations is done after it", "[cpu][emulated][planted]") {
  const auto k = kernel("moved", [](In<f32, 2> x, In<f32, 2> w, In<f32, 2> u, In<f32, 2> v, Out<f32, 2> y) {
    const Tile first = mma(load(x, {0, 0}, {1, 32}), load(w, {0, 0}, {32, 64}), zeros<f32>({1, 64}));
    const Tile second = mma(load(u, {0, 0}, {1, 128}), transpose(load(v, {0, 0}, {64, 128})), zeros<f32>({1, 64}));
    Var sums = first, others = first;
    for ([[maybe_unused]] Index i : range(x.extent(0) - 1)) sums = sums * 2.0f + second;
    for ([[maybe_unused]] Index i : range(x.extent(0) + 1)) others = others * 3.0f - second;
    store(y, {0, 0}, sums + others);
  });
  for (const std::int64_t rows : {1, 3})
    check_same([&](const Device& device) {
      const Tensor<f32, 2> y(device, {1, 64});
      launch(device.stream(), k, small_numbers<f32, 2>(device, {rows, 32}, 1),
             small_numbers<f32, 2>(device, {32, 64}, 2), small_numbers<f32, 2>(device, {1, 128}, 3),
             small_numbers<f32, 2>(device, {64, 128}, 4), y);
      return y.to_vector();
    });
}

TEST_CASE("bytes are an operand whose rows are no whole number of chunks", "[cpu][emulated][planted]") {
  const auto k = kernel("bytes", [](In<u8, 2> x, In<f32, 2> w, Out<f32, 2> y) {
    Var sums = zeros<f32>({24, 24});
    for (Index i : range(cdiv(x.extent(1), 20)))
      sums = mma(cast<f32>(load(x, {0, i}, {24, 20})), load(w, {i, 0}, {20, 24}), sums);
    store(y, {0, 0}, sums);
  });
  check_same([&](const Device& device) {
    const Tensor<f32, 2> y(device, {24, 24});
    launch(device.stream(), k, small_numbers<u8, 2>(device, {24, 96}, 1), small_numbers<f32, 2>(device, {96, 24}, 2),
           y);
    return y.to_vector();
  });
}

TEST_CASE("a view that starts between the vectors of its tensor", "[cpu][emulated][planted]") {
  const auto k = kernel("slice", [](In<f32, 2> x, Out<f32, 2> y) {
    store(y.slice(1, 5, 40), {0, 0}, load(x.slice(1, 3, 50), {0, 1}, {8, 16}));
  });
  check_same([&](const Device& device) {
    const auto y = small_numbers<f32, 2>(device, {8, 64}, 2);
    launch(device.stream(), k, small_numbers<f32, 2>(device, {8, 64}, 1), y);
    return y.to_vector();
  });
}

TEST_CASE("a matmul whose warps hold an odd number of right operands", "[cpu][emulated][planted]") {
  const auto k = kernel("odd", [](In<bf16, 2> x, In<bf16, 2> w, In<bf16, 2> transposed, Out<f32, 2> y) {
    const Tile a = load(x, {0, 0}, {32, 16});
    const Tile sums = mma(a, load(w, {0, 0}, {16, 48}), zeros<f32>({32, 48}));
    store(y, {0, 0}, mma(a, transpose(load(transposed, {0, 0}, {48, 16})), sums * 100.0f));
  });
  check_same([&](const Device& device) {
    const Tensor<f32, 2> y(device, {32, 48});
    launch(device.stream(), k, small_numbers<bf16, 2>(device, {32, 16}, 1), small_numbers<bf16, 2>(device, {16, 48}, 2),
           small_numbers<bf16, 2>(device, {48, 16}, 3), y);
    return y.to_vector();
  });
}

TEST_CASE("a loop carries the index of the next operand", "[cpu][emulated][planted]") {
  const auto k = kernel("next", [](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y, Scalar<i32> n) {
    Var sums = zeros<f32>({16, 16});
    Var at = n + 1;
    for ([[maybe_unused]] Index i : range(6)) {
      sums = mma(load(x, {0, at}, {16, 16}), load(w, {at, 0}, {16, 16}), sums * 2.0f);
      at = (at * 5 + 1) % 6;
    }
    store(y, {0, 0}, sums);
  });
  check_same([&](const Device& device) {
    const Tensor<f32, 2> y(device, {16, 16});
    launch(device.stream(), k, small_numbers<f32, 2>(device, {16, 96}, 1), small_numbers<f32, 2>(device, {96, 16}, 2),
           y, 1);
    return y.to_vector();
  });
}

TEST_CASE("operands of a matmul that are padded with ones, or stored in another type", "[cpu][emulated][planted]") {
  const auto k = kernel("operands", [](In<bf16, 2> x, In<f16, 2> w, Out<f32, 2> y) {
    const Tile a = load(x, {0, 0}, {16, 32}, 1.0f);
    const Tile b = cast<bf16>(load(w, {0, 0}, {32, 16}, 2.0f));
    store(y, {0, 0}, mma(a, b, mma(a, cast<bf16>(load(w, {0, 0}, {32, 16})), zeros<f32>({16, 16}))));
  });
  check_same([&](const Device& device) {
    const Tensor<f32, 2> y(device, {16, 16});
    launch(device.stream(), k, small_numbers<bf16, 2>(device, {13, 29}, 1), small_numbers<f16, 2>(device, {31, 16}, 2),
           y);
    return y.to_vector();
  });
}

TEST_CASE("CTAs that use one workspace in turn", "[cpu][emulated][planted]") {
  const auto k = kernel("turns", [](In<f32, 2> x, Out<f32, 2> y) {
    Index b = blocks(cdiv(x.extent(0), 128));
    store(y, {b, 0}, reshape(load(x, {b, 0}, {128, 512}), {512, 128}));
  });
  const Graph graph = run_passes(k.executable().graph());
  CHECK(generate(graph, dense_variant(graph), Arch::sm_90a).persistent);
  check_same([&](const Device& device) {
    const Tensor<f32, 2> y(device, {3500, 120});
    launch(device.stream(), k, small_numbers<f32, 2>(device, {900, 500}, 1), y);
    return y.to_vector();
  });
}

TEST_CASE("a loop prefetches into memory that another has used", "[cpu][emulated][planted]") {
  const auto k = kernel("loops", [](In<f32, 2> x, In<f32, 2> w, In<f32, 2> v, Out<f32, 2> y, Out<f32, 2> z) {
    Var sums = zeros<f32>({32, 32});
    for (Index i : range(cdiv(x.extent(1), 16))) sums = mma(load(x, {0, i}, {32, 16}), load(w, {i, 0}, {16, 32}), sums);
    store(y, {0, 0}, sums);
    Var others = zeros<f32>({32, 64});
    for (Index i : range(cdiv(x.extent(1), 16)))
      others = mma(load(x, {1, i}, {32, 16}), load(v, {i, 0}, {16, 64}), others);
    store(z, {0, 0}, others);
  });
  check_same([&](const Device& device) {
    const Tensor<f32, 2> y(device, {32, 32}), z(device, {32, 64});
    launch(device.stream(), k, small_numbers<f32, 2>(device, {64, 80}, 1), small_numbers<f32, 2>(device, {80, 32}, 2),
           small_numbers<f32, 2>(device, {80, 64}, 3), y, z);
    std::vector<f32> all = y.to_vector();
    for (const f32 value : z.to_vector()) all.push_back(value);
    return all;
  });
}

TEST_CASE("a loop reads and writes a sliding window", "[cpu][emulated][planted]") {
  const auto k = kernel("window", [](InOut<i32, 1> x) {
    for (Index i : range(20)) {
      const Tile window = load(x.slice(0, i, 200), {0}, {200});
      store(x.slice(0, i, 200), {0}, window * 3 + 1);
    }
  });
  check_same([&](const Device& device) {
    const auto x = small_numbers<i32, 1>(device, {256}, 1);
    launch(device.stream(), k, x);
    return x.to_vector();
  });
}

TEST_CASE("rows whose alignment differs from their tensor's", "[cpu][emulated][planted]") {
  const auto k = kernel("rows", [](In<f32, 2> x, Out<f32, 2> y) { store(y, {0, 0}, load(x, {0, 0}, {4, 16}) * 2.0f); });
  check_same([&](const Device& device) {
    const auto memory = small_numbers<f32, 1>(device, {80}, 1), results = small_numbers<f32, 1>(device, {80}, 2);
    launch(device.stream(), k, Tensor<f32, 2>(device, memory.data(), {4, 16}, {17, 1}),
           Tensor<f32, 2>(device, results.data(), {4, 16}, {19, 1}));
    return results.to_vector();
  });
}

TEST_CASE("two rows of whole vectors at an odd distance, and planes", "[cpu][emulated][planted]") {
  const auto check = [](auto number) {
    using T = decltype(number);
    const auto k = kernel("odd", [](In<T, 3> x, Out<T, 3> y) {
      const Tile t = load(x, {0, 0, 0}, {2, 2, 32});
      store(y, {0, 0, 0}, t);
    });
    using Strides = std::array<std::int64_t, 3>;
    for (const auto& [from, to] :
         {std::pair(Strides{96, 33, 1}, Strides{99, 48, 1}), std::pair(Strides{97, 48, 1}, Strides{96, 47, 1}),
          std::pair(Strides{-97, -33, 1}, Strides{33, 99, 1})})
      check_same([&, from = from, to = to](const Device& device) {
        const auto memory = small_numbers<T, 1>(device, {320}, 1), results = small_numbers<T, 1>(device, {320}, 2);
        T* const first = memory.data() + (from[0] < 0 ? 144 : 0);  // aligned, as all dense tensors are
        launch(device.stream(), k, Tensor<T, 3>(device, first, {2, 2, 32}, from),
               Tensor<T, 3>(device, results.data(), {2, 2, 32}, to));
        std::vector<float> all;
        for (const T value : results.to_vector()) all.push_back(static_cast<float>(value));
        return all;
      });
  };
  check(f32{});
  check(bf16{});
  check(u8{});
  check(i64{});
}

TEST_CASE("rows more than 2^31 elements apart", "[cpu][emulated][planted]") {
  const auto move = kernel("move", [](In<u8, 2> x, In<i32, 1> rows, InOut<u8, 2> y) {
    const Tile order = load(rows, {0}, {4});
    store(y, {0, 0}, load(x, {0, 0}, {4, 32}, 9));
    const Tile written = load(y, {0, 0}, {4, 32}, 9);
    scatter(y, order, {0}, cast<u8>(cast<i32>(written) + cast<i32>(gather(x, order, {0}, {32}))));
  });
  const auto multiply = kernel("multiply", [](In<bf16, 2> x, Out<f32, 2> y) {
    Var sums = zeros<f32>({16, 16});
    for (Index i : range(cdiv(x.extent(1), 16)))
      sums = mma(load(x, {0, i}, {16, 16}), transpose(load(x, {0, i}, {16, 16})), sums);
    store(y, {0, 0}, sums);
  });
  constexpr std::int64_t count = 3, length = 32, apart = (std::int64_t{1} << 30) + 16;
  check_same([&](const Device& device) {
    const auto rows = [&](auto number, unsigned seed) {
      using T = decltype(number);
      const FarRows<T> far(device, count, length, apart);
      for (std::int64_t i = 0; i < count; ++i) {
        const auto row = small_numbers<T, 1>(device, {length}, seed + static_cast<unsigned>(i));
        device.stream().copy(far.row(i), row.data(), length * sizeof(T));
      }
      return far;
    };
    const FarRows<u8> x = rows(u8{}, 1), y = rows(u8{}, 5);
    const Tensor<i32, 1> order(device, {4});
    order.copy_from(std::vector<i32>{2, 0, -1, 1});
    launch(device.stream(), move, x.tensor, order, y.tensor);
    const Tensor<f32, 2> products(device, {16, 16});
    launch(device.stream(), multiply, rows(bf16{}, 9).tensor, products);
    std::vector<f32> all = products.to_vector();
    for (std::int64_t i = 0; i < count; ++i) {
      std::vector<u8> row(length);
      device.copy_out(row.data(), y.row(i), row.size());
      all.insert(all.end(), row.begin(), row.end());
    }
    return all;
  });
}

TEST_CASE("tiles that begin far before their tensors", "[cpu][emulated][planted]") {
  // The last rows of a tile are those of the tensor, 2^31 elements or more after the tile's first.
  constexpr int tile = 32, first = 2 - tile;
  constexpr std::int64_t count = 2, length = 32, apart = (std::int64_t{1} << 27) + 16;
  const auto move = kernel("move", [](In<u8, 2> x, In<u8, 2> dense, InOut<u8, 2> y, Out<u8, 2> read,
                                      Out<u8, 2> gathered, Scalar<i32> start) {
    const auto from = x.slice(0, start, tile);
    const auto to = y.slice(0, start, tile);
    const Tile columns = iota({4}, 0) * 9;
    store(read, {0, 0}, load(from, {0, 0}, {tile, length}, 9));
    store(gathered, {0, 0}, gather(from.permute({1, 0}), columns, {0}, {tile}, 7));
    store(to, {0, 0}, load(dense, {0, 0}, {tile, length}));
    scatter(to.permute({1, 0}), columns, {0}, cast<u8>(iota({4, tile}, 1) + 50));
  });
  const auto add = kernel("add", [](InOut<i32, 2> y, Scalar<i32> start) {
    atomic_add(y.slice(0, start, tile), {0, 0}, iota({tile, 8}, 0) + 1);
  });
  const auto multiply = kernel("multiply", [](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 2> y, Scalar<i32> start) {
    const auto from = x.slice(0, start, tile);
    Var sums = zeros<f32>({tile, 16});
    for (Index i : range(cdiv(x.extent(1), 16)))
      sums = mma(load(from, {0, i}, {tile, 16}), load(w, {i, 0}, {16, 16}), sums);
    store(y, {0, 0}, sums);
  });
  check_same([&](const Device& device) {
    std::vector<float> all;
    const auto keep = [&](const auto& values) {
      for (const auto value : values) all.push_back(static_cast<float>(value));
    };
    const auto rows = [&](auto number, unsigned seed) {
      using T = decltype(number);
      const FarRows<T> far(device, count, length, apart);
      for (std::int64_t i = 0; i < count; ++i) {
        const auto row = small_numbers<T, 1>(device, {length}, seed + static_cast<unsigned>(i));
        device.stream().copy(far.row(i), row.data(), length * sizeof(T));
      }
      return far;
    };
    const auto keep_rows = [&]<class T>(const FarRows<T>& of) {
      for (std::int64_t i = 0; i < count; ++i) {
        std::vector<T> row(length);
        device.copy_out(row.data(), of.row(i), row.size() * sizeof(T));
        keep(row);
      }
    };
    const FarRows<u8> x = rows(u8{}, 1), y = rows(u8{}, 5);
    const Tensor<u8, 2> read(device, {tile, length}), gathered(device, {4, tile});
    launch(device.stream(), move, x.tensor, small_numbers<u8, 2>(device, {tile, length}, 7), y.tensor, read, gathered,
           first);
    keep(read.to_vector()), keep(gathered.to_vector()), keep_rows(y);
    const FarRows<i32> sums = rows(i32{}, 9);
    launch(device.stream(), add, sums.tensor, first);
    keep_rows(sums);
    const Tensor<f32, 2> products(device, {tile, 16});
    launch(device.stream(), multiply, rows(bf16{}, 11).tensor, small_numbers<bf16, 2>(device, {length, 16}, 15),
           products, first);
    keep(products.to_vector());
    return all;
  });
}

TEST_CASE("slices with steps that lead far before their tensors", "[cpu][emulated][planted]") {
  constexpr int step = 1 << 29, half = 1 << 14;
  const auto k = kernel("steps", [](In<f32, 1> x, In<f32, 2> rows, Out<f32, 2> y, Out<f32, 1> z, Scalar<i32> start) {
    const auto place = [&](const auto& tile) { return reshape(tile, {1, 8}); };
    store(y, {0, 0}, place(load(x.slice(0, INT_MIN, 8, step), {0}, {8}, 7)));  // element 4 is the tensor's first
    store(y, {1, 0}, place(load(x.slice(0, start, 8, step), {0}, {8}, 7)));
    store(y, {2, 0}, place(load(x.slice(0, 3 * step + 3, 8, -step), {0}, {8}, 7)));  // element 3 is its fourth
    store(y, {3, 0}, place(load(x.slice(0, INT_MIN, 8 * half, half * 2).slice(0, 0, 8, half), {0}, {8}, 7)));
    store(y, {4, 0}, place(load(rows.permute({1, 0}).slice(0, start, 8, step), {0, 1}, {8, 1}, 7)));
    store(z.slice(0, start, 8, step), {0}, cast<f32>(iota({8}, 0)) + 50.0f);
    store(z.slice(0, 3 * step + 5, 8, -step), {0}, cast<f32>(iota({8}, 0)) + 60.0f);
  });
  check_same([&](const Device& device) {
    const auto x = small_numbers<f32, 1>(device, {8}, 1);
    const auto rows = small_numbers<f32, 2>(device, {3, 8}, 2);
    const Tensor<f32, 2> y(device, {5, 8});
    const Tensor<f32, 1> z(device, {8});
    z.copy_from(std::vector<float>(8, -1));
    launch(device.stream(), k, x, rows, y, z, INT_MIN + 3);
    std::vector<float> all = y.to_vector();
    const std::vector<float> stored = z.to_vector();
    all.insert(all.end(), stored.begin(), stored.end());
    return all;
  });
}

TEST_CASE("an accumulator is read when the next matmul has been added", "[cpu][emulated][planted]") {
  for (const int rows : {16, 2}) {
    const auto k = kernel("after", [=](In<f32, 2> x, In<f32, 2> w, InOut<f32, 3> y) {
      Var sums = zeros<f32>({rows, 16});
      Var others = zeros<f32>({rows, 16});
      for (Index i : range(x.extent(1) / 64)) {
        sums = mma(load(x, {0, i}, {rows, 64}), load(w, {i, 0}, {64, 16}), sums);
        others = others * 3.0f + sums;
      }
      Var halves = zeros<f32>({rows, 16});
      for (Index i : range(x.extent(1) / 64)) {
        halves = mma(load(x, {0, i}, {rows, 64}), load(w, {i, 0}, {64, 16}), halves * 0.5f);
        store(y, {i, 0, 0}, reshape(halves, {1, rows, 16}));
      }
      store(y, {3, 0, 0}, reshape(sums + others * 1000.0f, {1, rows, 16}));
    });
    check_same([&](const Device& device) {
      const auto y = small_numbers<f32, 3>(device, {4, rows, 16}, 3);
      launch(device.stream(), k, small_numbers<f32, 2>(device, {rows, 192}, 1),
             small_numbers<f32, 2>(device, {192, 16}, 2), y);
      return y.to_vector();
    });
  }
}

TEST_CASE("a tile too large for registers is gathered by computed rows in an expression", "[cpu][emulated][planted]") {
  const auto check = [](const auto& rows_of) {
    const auto k = kernel("gathered", [&](In<f32, 2> x, In<f32, 2> w, In<i32, 1> rows, InOut<f32, 2> y) {
      const Tile t = load(x, {0, 0}, {128, 256}), g = gather(w, rows_of(rows), {0}, {256});
      store(y, {0, 0}, t * g + g);
      scatter(y, rows_of(rows) + 128, {0}, (t - g) * t + gather(x, rows_of(rows), {0}, {256}));
    });
    check_same([&](const Device& device) {
      const auto y = small_numbers<f32, 2>(device, {258, 250}, 3);
      const Tensor<i32, 1> rows(device, {128});
      std::vector<i32> transposed = numbered<i32>(128);
      std::ranges::reverse(transposed);
      rows.copy_from(transposed);
      launch(device.stream(), k, small_numbers<f32, 2>(device, {120, 256}, 1),
             small_numbers<f32, 2>(device, {128, 240}, 2), rows, y);
      return y.to_vector();
    });
  };
  check([](const auto&) { return iota({128}, 0); });
  check([](const auto&) { return iota({128}, 0) * -1 + 127; });
  check([](const auto& rows) { return load(rows, {0}, {128}); });
  check([](const auto& rows) { return (load(rows, {0}, {128}) + 5) % 128; });
}

TEST_CASE("a tile too large for registers is made from one row, gathered repeatedly", "[cpu][emulated][planted]") {
  const auto check = [](const auto& row) {
    const auto k = kernel("one_row", [&](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y, Scalar<i32> n) {
      const Tile t = load(x, {0, 0}, {128, 256}), g = gather(w, row(n), {0}, {256});
      store(y, {0, 0}, t * g + g);
    });
    check_same([&](const Device& device) {
      const Tensor<f32, 2> y(device, {128, 256});
      launch(device.stream(), k, small_numbers<f32, 2>(device, {120, 256}, 1),
             small_numbers<f32, 2>(device, {9, 240}, 2), y, 3);
      return y.to_vector();
    });
  };
  check([](const auto&) { return full<i32>({128}, 7); });
  check([](const auto& n) { return broadcast(n, {128}); });
  check([](const auto& n) { return broadcast(n * 2 - 1, {128}); });
}

TEST_CASE("rows too large for registers are part of the expression that gathers by them", "[cpu][emulated][planted]") {
  const auto k = kernel("rows", [](In<i32, 1> x, Out<i32, 1> y) {
    const Tile rows = load(x, {0}, {32768}), next = gather(x, rows);
    store(y, {0}, rows * 3 + next);
    store(y, {1}, (next - gather(x, next)) * next);
  });
  check_same([&](const Device& device) {
    const Tensor<i32, 1> x(device, {32000}), y(device, {65500});
    std::vector<i32> transposed = numbered<i32>(32000);
    std::ranges::reverse(transposed);
    x.copy_from(transposed);
    launch(device.stream(), k, x, y);
    return y.to_vector();
  });
}

TEST_CASE("a tile too large for registers keeps its values from before a store", "[cpu][emulated][planted]") {
  const auto k = kernel("before", [](InOut<f32, 2> x, Out<f32, 2> y) {
    const Tile before = load(x, {0, 0}, {128, 256});
    store(x, {0, 0}, before * 3.0f);
    store(y, {0, 0}, before - 1.0f);
  });
  check_same([&](const Device& device) {
    const auto x = small_numbers<f32, 2>(device, {120, 250}, 1);
    const Tensor<f32, 2> y(device, {120, 250});
    launch(device.stream(), k, x, y);
    std::vector<f32> all = y.to_vector();
    std::ranges::copy(x.to_vector(), std::back_inserter(all));
    return all;
  });
}

TEST_CASE("a transposed tile is stored by the first of the threads that hold copies", "[cpu][emulated][planted]") {
  const auto k = kernel("transposed", [](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y, Out<f32, 2> z) {
    store(y, {0, 0}, load(w, {0, 0}, {64, 64}) * 2.0f);
    store(z, {0, 0}, transpose(load(x, {0, 0}, {16, 16})));
  });
  check_same([&](const Device& device) {
    const Tensor<f32, 2> y(device, {64, 64}), z(device, {16, 16});
    launch(device.stream(), k, small_numbers<f32, 2>(device, {16, 16}, 1), small_numbers<f32, 2>(device, {64, 64}, 2),
           y, z);
    return z.to_vector();
  });
}

TEST_CASE("the running maximum of NaN alone is the lowest number", "[cpu][emulated][planted]") {
  const auto check = [](int rows, int columns) {
    const auto k = kernel("largest", [=](In<f32, 2> x, Out<f32, 2> y) {
      const Tile t = load(x, {0, 0}, {rows, columns});
      store(y, {0, 0}, cummax(t, 1));
      store(y, {1, 0}, cummin(t, 1));
    });
    // At the beginning of each row.
    std::vector<f32> values(static_cast<std::size_t>(rows * columns), 5);
    const auto is_nan = [&](int row, int column) { return column < (row * 7 + 1) % (columns + 1); };
    for (int i = 0; i < rows * columns; ++i)
      if (is_nan(i / columns, i % columns)) values[static_cast<std::size_t>(i)] = NAN;
    const auto y = tensor<f32, 2>({2 * rows, columns}, std::vector<f32>(values.size() * 2, 77));
    launch(test_device().stream(), k, tensor<f32, 2>({rows, columns}, values), y);
    const std::vector<f32> got = y.to_vector();
    for (int i = 0; i < 2 * rows * columns; ++i) {
      const float none = i < rows * columns ? -INFINITY : INFINITY;
      CAPTURE(rows, columns, i);
      REQUIRE(got[static_cast<std::size_t>(i)] == (is_nan(i / columns % rows, i % columns) ? none : 5));
    }
  };
  check(4, 70);    // along lanes
  check(64, 2);    // in registers
  check(3, 2048);  // over warps
}

TEST_CASE("accumulators that registers have no space for are multiplied in memory", "[cpu][emulated][planted]") {
  const auto k = kernel("many", [](In<f64, 2> x, In<f64, 2> w, Out<f64, 2> y) {
    store(y, {0, 0}, mma(load(x, {0, 0}, {256, 8}), load(w, {0, 0}, {8, 256}), zeros<f64>({256, 256})));
  });
  check_same([&](const Device& device) {
    const Tensor<f64, 2> y(device, {256, 256});
    launch(device.stream(), k, small_numbers<f64, 2>(device, {256, 8}, 1), small_numbers<f64, 2>(device, {8, 256}, 2),
           y);
    return y.to_vector();
  });
}

TEST_CASE("64-bit integers are cast for a matmul", "[cpu][emulated][planted]") {
  const auto check = [](auto factor, int rows, bool along_k) {
    using T = decltype(factor);
    const auto k = kernel("cast", [=](In<i64, 2> x, In<i64, 2> w, Out<f32, 2> y) {
      const auto right = along_k ? w.permute({1, 0}) : w.permute({0, 1});
      Var sums = zeros<f32>({rows, 32});
      for (Index i : range(cdiv(x.extent(1), 32)))
        sums = mma(cast<T>(cast<f32>(load(x, {0, i}, {rows, 32}))), cast<T>(cast<f32>(load(right, {i, 0}, {32, 32}))),
                   sums);
      store(y, {0, 0}, sums);
    });
    check_same([&](const Device& device) {
      const Tensor<f32, 2> y(device, {rows, 32});
      const auto w = along_k ? small_numbers<i64, 2>(device, {32, 70}, 2) : small_numbers<i64, 2>(device, {70, 32}, 2);
      launch(device.stream(), k, small_numbers<i64, 2>(device, {rows, 70}, 1), w, y);
      return y.to_vector();
    });
  };
  for (const bool along_k : {false, true})
    for (const int rows : {8, 64}) {
      check(f32(), rows, along_k);
      check(bf16(), rows, along_k);
    }
}

TEST_CASE("threads of the executor accumulate into one element concurrently", "[cpu][planted]") {
  const auto k = kernel("count", [](InOut<i32, 1> x, Scalar<i32> n) {
    [[maybe_unused]] Index b = blocks(n);
    atomic_add(x, {0}, full<i32>({1}, 1));
  });
  const Tensor<i32, 1> x(Device::cpu(), {1});
  x.copy_from(std::vector<i32>{0});
  launch(Device::cpu().stream(), k, x, 10000000);
  CHECK(x.to_vector()[0] == 10000000);
}

TEST_CASE("a grid's extent is selected when the kernel is launched", "[cpu][emulated][planted]") {
  const auto k = kernel("selected", [](Out<i32, 1> y, Scalar<i32> n) {
    Index b = blocks(where(n < 4, n, n - 4));
    store(y, {b}, full<i32>({1}, 1));
  });
  for (const i32 n : {3, 6}) {
    const auto y = tensor<i32, 1>({8}, std::vector<i32>(8));
    launch(test_device().stream(), k, y, n);
    CHECK(std::ranges::count(y.to_vector(), 1) == (n < 4 ? n : n - 4));
  }
}

TEST_CASE("keys differ if fields run into one another, or differ in line info alone", "[cache][planted]") {
  const auto key = [](std::string_view compiler, std::string_view architecture, bool line_info) {
    // A source with nothing to strip.
    return CacheKey({.compiler = compiler,
                     .architecture = architecture,
                     .flags = {},
                     .source = "int x;\n",
                     .line_info = line_info});
  };
  for (const std::string between : {"architecture:", "architecture :", "architecture 1:"})
    CHECK_FALSE(key("a", "b" + between + "c", false) == key("a" + between + "b", "c", false));
  CHECK_FALSE(key("a", "b", true) == key("a", "b", false));
}

TEST_CASE("an op with a constant broadcasts its operand", "[cpu][emulated][planted]") {
  const auto k = kernel("stretched", [](In<i32, 1> x, Out<i32, 3> y) {
    const Tile row = load(x, {0}, {4});
    const auto zeros = full<i32>({3, 1}, 0), ones = full<i32>({3, 1}, 1);
    int n = 0;
    const auto keep = [&](const auto& tile) { store(y, {n++, 0, 0}, reshape(tile, {1, 3, 4})); };
    keep(row + zeros);
    keep(zeros + row);
    keep(row - zeros);
    keep(row * ones);
    keep(ones * row);
    keep(row / ones);
  });
  const auto y = tensor<i32, 3>({6, 3, 4}, std::vector<i32>(72));
  launch(test_device().stream(), k, tensor<i32, 1>({4}, numbered<i32>(4, 5)), y);
  const std::vector<i32> got = y.to_vector();
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == static_cast<i32>(i % 4) + 5);
}

}  // namespace test_mutants
