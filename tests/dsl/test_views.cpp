// Views in kernels: slices with steps, windows, and axes that are split or flattened.
#include <functional>
#include <numeric>
#include <vector>

#include "support/catch.hpp"
#include "support/support.hpp"
#include "support/tensors.hpp"
#include "tessera/tessera.hpp"

namespace test_views {

using namespace tessera::internal;

namespace {

/// A tensor's elements, counted up from 1, and its kernel's output, down from -1, so that unwritten elements are
/// visible.
template <class T, int R>
Tensor<T, R> counted(const std::array<std::int64_t, R>& extents, int first = 1, int by = 1) {
  std::vector<T> values;
  std::int64_t size = 1;
  for (const std::int64_t extent : extents) size *= extent;
  for (std::int64_t i = 0; i < size; ++i) values.push_back(stored<T>(first + static_cast<int>(i % 100) * by));
  return tensor<T, R>(extents, values);
}

template <class T>
double number(T x) {
  return static_cast<double>(static_cast<float>(x));
}

std::string why(const std::function<void()>& body) { return error_of(body); }

/// Attention heads in rows: [rows, heads * d] viewed as [heads, rows, d], and back.
template <class T>
void check_heads(std::int64_t rows, std::int64_t heads, int d, int block) {
  const auto k = kernel("heads", [=](In<T, 2> x, Out<T, 2> y) {
    auto from = x.unflatten(1, d).permute({1, 0, 2}), to = y.unflatten(-1, d).permute({1, 0, 2});
    auto [h, r] = blocks(from.extent(0), cdiv(from.extent(1), block));
    store(to, {from.extent(0) - 1 - h, r, 0}, load(from, {h, r, 0}, {1, block, d}));
  });
  const auto x = counted<T, 2>({rows, heads * d}), y = counted<T, 2>({rows, heads * d}, -1, 0);
  launch(test_device().stream(), k, x, y);
  const auto from = x.to_vector(), to = y.to_vector();
  int wrong = 0;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < d; ++i) {
        const auto at = [&](std::int64_t head) { return static_cast<std::size_t>((r * heads + head) * d + i); };
        wrong += number(to[at(heads - 1 - h)]) != number(from[at(h)]);
      }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("an axis is split into rows", "[cpu]") {
  check_heads<f32>(5, 3, 16, 4);
  check_heads<f16>(9, 4, 64, 8);
  check_heads<bf16>(3, 2, 12, 2);  // rows of 24 bytes: no 16-byte access
  check_heads<i32>(4, 5, 3, 4);
  check_heads<u8>(6, 2, 20, 4);
}

TEST_CASE("slices have steps, forward and backward", "[cpu]") {
  for (const int step : {1, 2, 3, -1, -2}) {
    const auto k = kernel("steps", [=](In<f32, 2> x, Out<f32, 2> y, InOut<f32, 2> z, Scalar<i32> start) {
      auto part = x.slice(0, start, 9, step).slice(1, 1, 30, 2);
      for (Index i : range(2))
        for (Index j : range(2)) store(y, {i, j}, load(part, {i, j}, {5, 16}, -5));
      for (Index i : range(4)) atomic_add(z.slice(0, start, 9, step), {i, 0}, full<f32>({4, 2}, 3));
      Tile rows = iota({12}, 0) - 1;
      scatter(z.slice(0, start, 9, step), rows, {1}, gather(part, rows, {0}, {2}, 7));
    });
    for (const int start : {0, 4, 12, -3, 20}) {
      INFO("step " << step << " from " << start);
      const auto x = counted<f32, 2>({13, 40}), y = counted<f32, 2>({10, 32}, 0, 0),
                 z = counted<f32, 2>({13, 4}, -1, 0);
      launch(test_device().stream(), k, x, y, z, start);
      const auto from = x.to_vector(), read = y.to_vector(), written = z.to_vector();
      const auto element = [&](int i, int j, float padding) {  // of the slice
        const int r = start + i * step, c = 1 + 2 * j;
        const bool inside = i >= 0 && i < 9 && r >= 0 && r < 13 && j < 30 && c < 40;
        return inside ? from[static_cast<std::size_t>(r * 40 + c)] : padding;
      };
      std::vector<float> expected(13 * 4, -1);
      int wrong = 0;
      for (int i = 0; i < 10; ++i)
        for (int j = 0; j < 32; ++j) wrong += read[static_cast<std::size_t>(i * 32 + j)] != element(i, j, -5);
      for (int i = 0; i < 9; ++i) {
        const int r = start + i * step;
        if (r < 0 || r >= 13) continue;
        for (int j = 0; j < 2; ++j) {
          expected[static_cast<std::size_t>(r * 4 + j)] += 3;
          expected[static_cast<std::size_t>(r * 4 + 2 + j)] = element(i, j, 7);
        }
      }
      CHECK(wrong == 0);
      CHECK(written == expected);
    }
  }
}

TEST_CASE("windows of an axis overlap, or leave elements out", "[cpu]") {
  for (const auto& [size, step] :
       {std::pair(4, 4), std::pair(5, 2), std::pair(3, 7), std::pair(1, 1), std::pair(32, 1)}) {
    INFO(size << " by " << step);
    const auto k = kernel("windows", [size = size, step = step](In<f32, 1> x, Out<f32, 2> y, Out<i32, 1> n) {
      auto windows = x.unfold(0, size, step);
      Index w = blocks(cdiv(y.extent(0), 4));
      store(y, {w, 0}, load(windows, {w, 0}, {4, size}, -1));
      if_(w == 0, [&] { store(n, {0}, reshape(windows.extent(0), {1}) + windows.extent(1) * 0); });
    });
    for (const int extent : {40, 31, 3}) {
      INFO("of " << extent);
      const int count = extent < size ? 0 : (extent - size) / step + 1;
      const auto x = counted<f32, 1>({extent});
      const auto y = counted<f32, 2>({count + 2, size}, 0, 0);
      const auto n = counted<i32, 1>({1}, 0);
      launch(test_device().stream(), k, x, y, n);
      const auto from = x.to_vector(), read = y.to_vector();
      CHECK(n.to_vector()[0] == count);
      int wrong = 0;
      for (int w = 0; w < count + 2; ++w)
        for (int i = 0; i < size; ++i)
          wrong += read[static_cast<std::size_t>(w * size + i)] !=
                   (w < count ? from[static_cast<std::size_t>(w * step + i)] : -1);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("axes of contiguous rows are flattened", "[cpu]") {
  const auto k = kernel("flat", [](In<f16, 3> x, Out<f16, 2> y, InOut<i32, 2> sums) {
    auto rows = x.flatten(0);
    Index r = blocks(cdiv(rows.extent(0), 8));
    store(y, {r, 0}, load(rows, {r, 0}, {8, 32}));
    atomic_add(sums.flatten(0).unfold(0, 2, 2).slice(0, 1, 2), {0, 0}, full<i32>({2, 2}, 1));
  });
  const auto x = counted<f16, 3>({3, 5, 24});
  const auto y = counted<f16, 2>({17, 24}, -1, 0);
  const auto y_part = y.slice(0, 0, 15);
  const auto sums = counted<i32, 2>({3, 3}, 0, 0);
  launch(test_device().stream(), k, x, y, sums);
  const auto from = x.to_vector(), to = y.to_vector();
  int wrong = 0;
  for (std::size_t i = 0; i < to.size(); ++i)
    wrong += number(to[i]) != (i < from.size() ? number(from[i]) : i < 16 * 24 ? 0 : -1);
  CHECK(wrong == 0);
  CHECK(sums.to_vector() == std::vector<i32>{0, 0, 2, 2, 2, 2, 0, 0, 0});

  // The strides of a part of each row do not allow it; those of one row do not matter.
  const std::string refused = why([&] { launch(test_device().stream(), k, x.slice(1, 0, 4), y_part, sums); });
  CHECK(says(refused, {"launch of kernel 'flat' refused", "test_views.cpp:", "axes 0, 1 of argument 1 are flattened",
                       "strides [120,24,1]", "pass a dense tensor"}));
  CHECK_NOTHROW(launch(test_device().stream(), k, x.slice(1, 0, 4).slice(0, 0, 1), y_part, sums));
}

TEST_CASE("matmuls and elements go through views", "[cpu]") {
  // Each head's matmul of a row-major [rows, heads * d] with itself, by tensor cores if available.
  const auto k = kernel("scores", [](In<f16, 2> x, Out<f32, 3> y, Out<f32, 1> z) {
    auto heads = x.unflatten(1, 32);
    Index h = blocks(heads.extent(1));
    Tile q = reshape(load(heads, {0, h, 0}, {32, 1, 32}), {32, 32});
    Tile p = reshape(load(heads.permute({1, 2, 0}), {h, 0, 0}, {1, 32, 32}), {32, 32});
    store(y, {h, 0, 0}, reshape(mma(q, p, zeros<f32>({32, 32})), {1, 32, 32}));
    Tile i = iota({8}, 0), head = i % 3, element = i * 4;
    Tile picked = gather(heads, {i, head, element});
    scatter(z, {i}, cast<f32>(picked) + 0);
  });
  const auto x = counted<f16, 2>({32, 96}, 0);
  const auto y = counted<f32, 3>({3, 32, 32}, 0);
  const auto z = counted<f32, 1>({8}, 0);
  launch(test_device().stream(), k, x, y, z);
  const auto in = x.to_vector();
  const auto out = y.to_vector(), elements = z.to_vector();
  const auto at = [&](int r, int h, int i) { return number(in[static_cast<std::size_t>(r * 96 + h * 32 + i)]); };
  int wrong = 0;
  for (int h = 0; h < 3; ++h)
    for (int r = 0; r < 32; ++r)
      for (int c = 0; c < 32; ++c) {
        double sum = 0;
        for (int i = 0; i < 32; ++i) sum += at(r, h, i) * at(c, h, i);
        wrong += std::abs(out[static_cast<std::size_t>((h * 32 + r) * 32 + c)] - sum) > 1e-6 * sum + 1e-3;
      }
  CHECK(wrong == 0);
  for (int i = 0; i < 8; ++i) CHECK(elements[static_cast<std::size_t>(i)] == at(i, i % 3, i * 4));
}

TEST_CASE("launches whose rows do not fit are rejected, as are kernels that no strides can satisfy", "[language]") {
  const Device device = Device::cpu();
  const auto rows = kernel("rows", [](In<f32, 2> x, Out<f32, 3> y) {
    store(y, {0, 0, 0}, load(x.unflatten(1, 6), {0, 0, 0}, {2, 2, 6}));
  });
  const auto refused = why([&] {
    launch(device.stream(), rows, device.tensor<f32>({2, 15}), device.tensor<f32>({2, 2, 6}));
  });
  CHECK(says(refused, {"it requires", "axis 1 of the view consists of rows of 6 elements, as unflatten requires"}));
  const auto error = [](const auto& use) {
    return why([&] {
      kernel("views", [&](In<f32, 3> x, Out<f32, 3> y) {
        use(x, y);
        store(y, {0, 0, 0}, zeros<f32>({1, 1, 1}));
      });
    });
  };
  const auto of = [&](auto use, std::initializer_list<std::string_view> words) {
    const std::string text = error(use);
    INFO(text);
    CHECK(says(text, {"kernel 'views'", "test_views.cpp:"}));
    CHECK(says(text, words));
  };
  of([](auto& x, auto&) { x.slice(0, 0, 4, 0); }, {"slice: a step of 0; a step must not be 0"});
  of([](auto& x, auto&) { x.slice(1, 0, 4).unflatten(1, 2); },
     {"unfold_view: axis 1 is a slice", "take the slice afterwards"});
  of([](auto& x, auto&) { x.slice(1, 0, 4).flatten(0); }, {"flatten_view: axis 1 is a slice"});
  of([](auto& x, auto&) { x.unflatten(2, 4).flatten(2); }, {"flatten_view: axis 2 is of windows"});
  of([](auto& x, auto&) { x.flatten(2); }, {"flatten_view: axis 2 in rank 3 has no axis after it"});
  of([](auto& x, auto&) { x.unflatten(0, 0); }, {"windows of 0 elements, 0 apart; both must be from 1"});
  of([](auto& x, auto&) { x.unflatten(2, 4).unfold(3, 6, 1); }, {"windows of 6 elements in an axis of 4"});
  of([](auto&, auto& y) { y.unfold(2, 4, 2); },
     {"windows of 4 elements, 2 apart, share elements; only an In may have such windows"});
  of(
      [](auto& x, auto&) {
    for (Index i : range(3)) (void)i, x.unflatten(2, 4);
      },
      {"require applies to the whole launch; call it outside of loops and if_"});
}

TEST_CASE("16-byte accesses are only used for rows that consist of them", "[plan]") {
  const auto cuda = [](int d, int step) {
    const std::string text = cuda_source(kernel(
                                             "rows",
                                             [=](In<f16, 2> x, Out<f16, 3> y) {
      store(y, {0, 0, 0}, load(x.unfold(1, d, step), {0, 0, 0}, {4, 4, 64}));
                                             }),
                                         Arch::sm_80);
    return text.substr(0, text.find("// ---- helpers"));
  };
  const auto has = [](const std::string& text, std::string_view part) { return text.find(part) != text.npos; };
  CHECK(has(cuda(64, 64), "read_input<8>"));
  CHECK(has(cuda(64, 68), "read_input<4>"));  // each begins at a multiple of 8 bytes
  CHECK(has(cuda(60, 64), "read_input<4>"));  // the last one ends within 16 bytes
  CHECK_FALSE(has(cuda(64, 33), "read_input<"));
}

TEST_CASE("tiles of a view take atomics as the functions do", "[cpu][atomics]") {
  const auto changed = [](bool by_tiles) {
    const auto k = kernel("changes", [=](InOut<i32, 2> y, Out<i32, 2> old) {
      auto [i, j] = blocks(cdiv(y.extent(0), 2), cdiv(y.extent(1), 4));
      const auto tiles = y.tiles({2, 4});
      Tile x = full<i32>({2, 4}, 6) + iota({2, 4}, 1);
      const Coord at[] = {i, j};
      int number = 0;
      const auto keep = [&](const Tile<i32, 2>& was) { store(old, {i * 8 + number++, j}, was); };
      const auto release = MemoryOrder::release;
      keep(by_tiles ? tiles.atomic_add(at, x) : atomic_add(y, at, x));
      keep(by_tiles ? tiles.atomic_max(at, x + 3) : atomic_max(y, at, x + 3));
      keep(by_tiles ? tiles.atomic_min(at, x) : atomic_min(y, at, x));
      keep(by_tiles ? tiles.atomic_and(at, x - 4) : atomic_and(y, at, x - 4));
      keep(by_tiles ? tiles.atomic_or(at, x) : atomic_or(y, at, x));
      keep(by_tiles ? tiles.atomic_xor(at, x * 2, release) : atomic_xor(y, at, x * 2, release));
      keep(by_tiles ? tiles.atomic_exchange(at, x) : atomic_exchange(y, at, x));
      keep(by_tiles ? tiles.atomic_compare_exchange(at, full<i32>({1, 1}, 8), x + 1)
                    : atomic_compare_exchange(y, at, full<i32>({1, 1}, 8), x + 1));
    });
    const auto y = counted<i32, 2>({5, 7});
    const auto old = tensor<i32, 2>({48, 8}, std::vector<i32>(48 * 8, -1));
    launch(test_device().stream(), k, y, old);
    return std::pair(y.to_vector(), old.to_vector());
  };
  const auto [y, old] = changed(true);
  CHECK(std::pair(y, old) == changed(false));
  CHECK(y[0] == 6);            // exchanged
  CHECK(y[2] == 9);            // was 8, as expected
  CHECK(old[0] == 1);          // before the sum
  CHECK(old[4 * 8] == 9);      // the larger of 1 + 6 and 6 + 3, before the smaller
  CHECK(old[4 * 8 + 7] == 0);  // out of bounds
  const auto refused = [](const auto& body) {
    return error_of([&] { (void)kernel("refused", [&](InOut<i32, 2> y) { body(y.tiles({2, 4})); }); });
  };
  CHECK(says(refused([](const auto& tiles) {
               tiles.atomic_add({0, 0}, full<i32>({2, 2}, 1));
             }),
             {"atomic_add: a tile of [2,2] among tiles of [2,4]"}));
  CHECK(says(refused([](const auto& tiles) {
               tiles.atomic_compare_exchange({0, 0}, full<i32>({2, 4}, 1), full<i32>({1, 1}, 1));
             }),
             {"atomic_compare_exchange: a tile of [1,1] among tiles of [2,4]"}));
}

TEST_CASE("the stride of an axis of one element does not affect flattening", "[cpu]") {
  const auto flat = kernel("flat", [](In<f32, 2> x, Out<f32, 1> y) { store(y, {0}, load(x.flatten(0), {0}, {8}, -1)); });
  const auto nested = kernel("nested", [](In<f32, 3> x, Out<f32, 1> y) {
    auto pairs = x.flatten(0);
    auto all = pairs.flatten(0);
    store(y, {0}, load(all, {0}, {16}, -1) + reshape(load(pairs, {0, 0}, {16, 1}, 0), {16}));
  });
  const auto two_ways = kernel("two_ways", [](In<f32, 3> x, Out<f32, 2> y) {
    store(y, {0, 0}, load(x.flatten(0), {0, 0}, {2, 4}) + load(x.permute({0, 2, 1}).flatten(1), {0, 0}, {2, 4}));
  });
  const auto written = kernel("written", [](In<f32, 1> x, Out<f32, 2> y) { store(y.flatten(0), {0}, load(x, {0}, {8})); });
  const Device& device = test_device();
  std::vector<float> values(64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Tensor<f32, 1> memory(device, {64}), y8(device, {8}), y16(device, {16});
  memory.copy_from(values);
  const auto over = [&]<std::size_t R>(const std::int64_t(&extents)[R], const std::int64_t(&strides)[R]) {
    return Tensor<f32, static_cast<int>(R)>(device, memory.data(), extents, strides, memory.memory());
  };
  const auto steps = [&](int count, int step, std::size_t size) {
    std::vector<float> expected(size, -1);
    for (int i = 0; i < count; ++i) expected[static_cast<std::size_t>(i)] = static_cast<float>(i * step);
    return expected;
  };
  // Columns: dense, with steps of 2, as NumPy's a[:, None] has them, backward in the other axis; and rows.
  for (const auto& [column, step] : {std::pair(over({6, 1}, {1, 6}), 1), std::pair(over({6, 1}, {2, 777}), 2),
                                     std::pair(over({6, 1}, {1, 0}), 1), std::pair(over({6, 1}, {3, 1}), 3),
                                     std::pair(over({6, 1}, {1, -5}), 1), std::pair(over({1, 6}, {-9, 2}), 2),
                                     std::pair(over({1, 1}, {50, 60}), 1)}) {
    CAPTURE(column.extents(), column.strides());
    launch(device.stream(), flat, column, y8);
    CHECK(y8.to_vector() == steps(column.extent(0) * column.extent(1) == 1 ? 1 : 6, step, 8));
  }
  CHECK(says(error_of([&] { launch(device.stream(), flat, over({3, 2}, {1, 3}), y8); }), {"axes 0, 1", "strides [1,3]"}));
  // Inner, middle and outer axes of one element, in views of views.
  for (const auto& [x, step] : {std::pair(over({3, 4, 1}, {4, 1, 777}), 1), std::pair(over({12, 1, 1}, {2, 5, 9}), 2),
                                std::pair(over({1, 1, 1}, {7, 7, 7}), 1), std::pair(over({1, 12, 1}, {0, 3, 0}), 3)}) {
    CAPTURE(x.extents(), x.strides());
    std::vector<float> expected = steps(static_cast<int>(x.size()), step, 16);
    for (std::size_t i = 0; i < static_cast<std::size_t>(x.size()); ++i) expected[i] *= 2;
    launch(device.stream(), nested, x, y16);
    CHECK(y16.to_vector() == expected);
  }
  std::vector<float> expected(16, -1);
  for (std::size_t i = 0; i < 12; ++i) expected[i] = static_cast<float>(i);
  launch(device.stream(), nested, over({3, 1, 4}, {4, 777, 1}), y16);
  {
    std::vector<float> pairs = expected;
    for (std::size_t i = 0; i < 16; ++i) pairs[i] = expected[i] + (i < 3 ? static_cast<float>(4 * i) : 0);
    CHECK(y16.to_vector() == pairs);
  }
  // An axis of one element that is flattened with both its neighbors can match the stride of one of them at most.
  CHECK(says(error_of([&] { launch(device.stream(), two_ways, over({2, 1, 4}, {4, 4, 1}), over({2, 4}, {4, 1})); }),
             {"overlaps"}));
  const Tensor<f32, 2> y24(device, {2, 4});
  CHECK(says(error_of([&] { launch(device.stream(), two_ways, over({2, 1, 4}, {4, 4, 1}), y24); }),
             {"launch of kernel 'two_ways' refused: ", "test_views.cpp:", "axis 1 of argument 1, of one element",
              "address the axes one by one"}));
  const Tensor<f32, 2> column = over({6, 1}, {2, 333});
  const Tensor<f32, 1> ones(device, {8});
  ones.fill(1);
  launch(device.stream(), written, ones, column);
  for (int i = 0; i < 12; i += 2) CHECK(memory.to_vector()[static_cast<std::size_t>(i)] == 1);
}

}  // namespace test_views
