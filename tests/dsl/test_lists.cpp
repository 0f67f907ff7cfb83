// Lists of tensors as one parameter: what each number selects, launches with fewer tensors, layouts that differ, and
// what is refused.
#include <array>
#include <optional>
#include <regex>
#include <vector>

#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_lists {

using namespace tessera::internal;

namespace {

const Device& device = test_device();

Tensor<f32, 1> line(std::int64_t count, int from) {
  std::vector<f32> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<f32>((from + i * 37) % 101));
  return device.tensor<f32>({count}, values);
}
Tensor<i32, 2> matrix(std::int64_t rows, std::int64_t columns, int from) {
  std::vector<i32> values;
  for (std::int64_t i = 0; i < rows * columns; ++i) values.push_back(static_cast<i32>(from + i));
  return device.tensor<i32>({rows, columns}, values);
}

// Row b of y: the tensor b - 1 of the list, padded with -1; and its extent.
const auto& rows_kernel() {
  static const auto k =
      kernel("rows", [](List<In<f32, 1>, 4> xs, Out<f32, 2> y, Out<i32, 1> extents, Out<i32, 1> size) {
    const Index b = blocks(y.extent(0));
    store(y, {b, 0}, reshape(load(xs[b - 1], {0}, {64}, -1), {1, 64}));
    store(extents, {b}, full<i32>({1}, 1) * xs[b - 1].extent(0));
    store(size, {b}, full<i32>({1}, 1) * xs.size());
  });
  return k;
}

}  // namespace

TEST_CASE("a list gives the tensor of a number and nothing outside of it", "[api]") {
  std::vector<Tensor<f32, 1>> xs{line(64, 1), line(7, 2), line(0, 3), line(100, 4)};
  const Tensor<f32, 2> y(device, {6, 64});
  const Tensor<i32, 1> extents(device, {6}), size(device, {6});
  for (std::size_t count : {4u, 2u, 0u, 3u}) {
    y.fill(9), extents.fill(9);
    const std::span given(xs.data(), count);
    launch(device.stream(), rows_kernel(), given, y, extents, size);
    const std::vector<f32> made = y.to_vector();
    const std::vector<i32> lengths = extents.to_vector();
    for (std::size_t row = 0; row < 6; ++row) {
      const bool is_there = row >= 1 && row - 1 < count;
      const std::vector<f32> expected = is_there ? xs[row - 1].to_vector() : std::vector<f32>();
      INFO(count << " tensors, row " << row);
      CHECK(lengths[row] == static_cast<i32>(expected.size()));
      for (std::size_t i = 0; i < 64; ++i)
        if (const f32 wanted = i < expected.size() ? expected[i] : -1; made[row * 64 + i] != wanted)
          FAIL(i << ": " << made[row * 64 + i] << ", not " << wanted);
    }
    CHECK(size.to_vector() == std::vector(6, static_cast<i32>(count)));
  }
}

TEST_CASE("the text of a kernel with a list names the list", "[api]") {
  CHECK(to_string(rows_kernel().graph())
            .find("kernel rows(List<In<f32, 1>, 4>, Out<f32, 2>, Out<i32, 1>, Out<i32, 1>)") != std::string::npos);
  // The names are the author's if the source can be read.
  const std::string text = cuda_source(rows_kernel(), Arch::sm_90a);
  for (const char* part :
       {R"(parameter 1, (in0|xs): List<In<f32, 1>, 4>, each, contiguous along axis 0)", R"(parameter 2, (out1|y): )",
        R"(const __grid_constant__ TensorList<float, 4, 1, int> (in0|xs),\s+int (scalar0|xs_2),)",
        R"((out1|y)_extent0)"})
    CHECK(std::regex_search(text, std::regex(part)));
}

TEST_CASE("numbers from loops and memory select tensors", "[api]") {
  const auto k = kernel("selected", [](List<InOut<i32, 2>, 3> xs, In<i32, 1> order, Out<i32, 2> sums) {
    Var total = zeros<i32>({8, 16});
    for (Index i : range(order.extent(0))) {
      const Index number = item(load(order, {i}, {1}));
      const Tile x = load(xs[number], {0, 0}, {8, 16});
      total = total + x;
      store(xs[number], {0, 0}, x + 100);  // seen by the next iteration with this number
    }
    for (Index i : range(xs.size()))
      for (Index j : range(cdiv(xs[i].extent(1), 16))) {
        const Tile x = load(xs[i], {0, j}, {8, 16});
        total = total + 1000 * x;
      }
    store(sums, {0, 0}, total);
  });
  std::vector<Tensor<i32, 2>> xs{matrix(8, 16, 0), matrix(5, 40, 1000)};
  const std::vector<i32> numbers{1, 0, 1, 7, -1, 2, 1};
  const Tensor<i32, 2> sums(device, {8, 16});
  launch(device.stream(), k, xs, device.tensor<i32>({std::ssize(numbers)}, numbers), sums);
  std::vector<std::vector<i32>> memory{matrix(8, 16, 0).to_vector(), matrix(5, 40, 1000).to_vector()};
  std::vector<i32> expected(128);
  const std::array<int, 2> row_count{8, 5}, columns{16, 40};
  for (const i32 n : numbers) {
    if (n != 0 && n != 1) continue;
    const auto at = static_cast<std::size_t>(n);
    for (int r = 0; r < row_count[at]; ++r)
      for (int c = 0; c < 16; ++c) {
        i32& x = memory[at][static_cast<std::size_t>(r * columns[at] + c)];
        expected[static_cast<std::size_t>(r * 16 + c)] += x;
        x += 100;
      }
  }
  for (std::size_t i = 0; i < 2; ++i)
    for (int r = 0; r < row_count[i]; ++r)
      for (int c = 0; c < columns[i]; ++c)
        expected[static_cast<std::size_t>(r * 16 + c % 16)] +=
            1000 * memory[i][static_cast<std::size_t>(r * columns[i] + c)];
  CHECK(sums.to_vector() == expected);
  for (std::size_t i = 0; i < 2; ++i) CHECK(xs[i].to_vector() == memory[i]);
}

TEST_CASE("tensors of a list may have layouts that differ", "[api]") {
  const auto k = kernel("transposes", [](List<In<i32, 2>, 4> xs, List<Out<i32, 2>, 4> ys) {
    const auto [b, i, j] = blocks(xs.size(), 3, 3);
    store(ys[b], {j, i}, transpose(load(xs[b], {i, j}, {16, 16})));
  });
  const auto whole = matrix(40, 48, 5);
  const std::array xs{whole, whole.slice(0, 3, 20).slice(1, 1, 33), whole.permuted({1, 0}), whole.slice(1, 0, 1)};
  std::vector<Tensor<i32, 2>> ys;
  for (const auto& x : xs) {
    ys.emplace_back(device, std::array{x.extent(1), x.extent(0)});
    ys.back().fill(-1);
  }
  // Each pair alone, then all together: tensors of one layout have vector accesses, others have none.
  for (std::size_t i = 0; i < xs.size(); ++i)
    launch(device.stream(), k, std::span(xs).subspan(i, 1), std::span(ys).subspan(i, 1));
  std::vector<std::vector<i32>> alone;
  for (const auto& y : ys) alone.push_back(y.to_vector()), y.fill(-1);
  launch(device.stream(), k, xs, ys);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    CHECK(ys[i].to_vector() == alone[i]);
    CHECK(ys[i].to_vector() == xs[i].permuted({1, 0}).to_vector());
  }
}

TEST_CASE("views are taken of tensors of a list", "[api]") {
  const auto k = kernel("views", [](List<In<i32, 2>, 2> xs, Out<i32, 2> y) {
    const Index b = blocks(2);
    const auto flat = xs[b].flatten(0);
    store(y, {b, 0}, reshape(load(flat.slice(0, 3, flat.extent(0) - 3), {0}, {16}, -7), {1, 16}));
  });
  const std::vector xs{matrix(2, 8, 0), matrix(3, 4, 100)};
  const Tensor<i32, 2> y(device, {2, 16});
  launch(device.stream(), k, xs, y);
  std::vector<i32> expected(32, -7);
  for (i32 i = 0; i < 13; ++i) expected[static_cast<std::size_t>(i)] = 3 + i;
  for (i32 i = 0; i < 9; ++i) expected[static_cast<std::size_t>(16 + i)] = 103 + i;
  CHECK(y.to_vector() == expected);
  // One column of a matrix: its elements are 8 apart, those of the other tensor are neighbors.
  launch(device.stream(), k, std::vector{xs[0], matrix(8, 8, 0).slice(1, 0, 1)}, y);
  const std::vector<i32> made = y.to_vector();
  for (i32 i = 0; i < 5; ++i) CHECK(made[static_cast<std::size_t>(16 + i)] == 8 * (3 + i));
  CHECK(says(error_of([&] { launch(device.stream(), k, std::vector{xs[0], matrix(6, 8, 0).slice(1, 0, 3)}, y); }),
             {"launch of kernel 'views' refused", "argument 1[1]"}));
}

TEST_CASE("the host computes extents of a list for grid and requirements", "[api]") {
  const auto k = kernel("required", [](List<In<f32, 1>, 3> xs, List<Out<f32, 1>, 3> ys) {
    Var all = constant<i32>(0);
    for (int i = 0; i < 3; ++i) {
      same_extents(xs[i], ys[i]);
      all = all + cdiv(xs[i].extent(0), 8);
    }
    require(xs[xs.size() - 1].extent(0) > 2, "the last tensor has more than 2 elements");
    Var tensor = constant<i32>(0);
    Var tile = blocks(all);
    while_([&] { return tile >= cdiv(xs[tensor].extent(0), 8); }, [&] {
      tile = tile - cdiv(xs[tensor].extent(0), 8);
      tensor = tensor + 1;
    });
    store(ys[tensor], {tile}, 2 * load(xs[tensor], {tile}, {8}));
  });
  const std::vector xs{line(20, 1), line(8, 2), line(3, 3)};
  std::vector<Tensor<f32, 1>> ys;
  for (const auto& x : xs) ys.emplace_back(device, std::array{x.extent(0)});
  launch(device.stream(), k, xs, ys);
  for (std::size_t i = 0; i < 3; ++i) {
    std::vector<f32> expected = xs[i].to_vector();
    for (f32& x : expected) x *= 2;
    CHECK(ys[i].to_vector() == expected);
  }
  CHECK(says(
      error_of([&] { launch(device.stream(), k, std::vector{xs[0], line(2, 0)}, std::vector{ys[0], line(2, 0)}); }),
      {"the last tensor has more than 2 elements",
       "argument 1[0] is f32 [20], argument 1[1] is f32 [2], argument "
       "2[0] is"}));
  CHECK(says(error_of([&] { launch(device.stream(), k, std::vector{xs[0], xs[1]}, std::vector{ys[0], ys[2]}); }),
             {"arguments 1 and 2 have the same extent along axis 0"}));
}

TEST_CASE("a launch refuses lists that it cannot take", "[api]") {
  const auto k = kernel("doubled", [](In<f32, 1> scale, List<In<f32, 1>, 2> xs, List<Out<f32, 1>, 2> ys) {
    const Index b = blocks(xs.size());
    store(ys[b], {0}, load(scale, {0}, {1}) * load(xs[b], {0}, {64}));
  });
  const auto scale = line(1, 2), a = line(64, 1), b = line(64, 2), c = line(64, 3);
  const auto refused = [&](const std::vector<Tensor<f32, 1>>& xs, const std::vector<Tensor<f32, 1>>& ys) {
    return error_of([&] { launch(device.stream(), k, scale, xs, ys); });
  };
  CHECK(
      says(refused({a, a, a}, {b}), {"launch of kernel 'doubled' refused: argument 2 has 3 tensors, and the List takes "
                                     "up to 2"}));
  CHECK(
      says(refused({a, b}, {c, b.slice(0, 60, 4)}), {"argument 3[1] is written and overlaps argument 2[1] in memory"}));
  CHECK(says(refused({a}, {c, c}), {"argument 3[0] is written and overlaps argument 3[1] in memory"}));
  CHECK(says(refused({a}, {scale}), {"argument 3[0] is written and overlaps argument 1 in memory"}));
  CHECK(says(refused({a, Tensor<f32, 1>()}, {c}), {"argument 2 is a tensor without memory"}));
  CHECK_NOTHROW(launch(device.stream(), k, scale, std::vector{a, a},
                       std::vector{b, c}));  // two tensors that are only read may be one
  if (!device.shares_host_memory())
    CHECK(says(refused({a, Device::cpu().tensor<f32>({4})}, {b}), {"argument 2 is a tensor of"}));
}

TEST_CASE("a list is counted by the host", "[api]") {
  std::vector<Argument> arguments(8);
  arguments[4].scalar = cell_of(5);
  CHECK(says(error_of([&] { rows_kernel().executable().prepare(arguments); }),
             {"argument 1 is a list of 5 tensors; it takes 0 to 4"}));
  arguments[4].scalar = cell_of(-1);
  CHECK(says(error_of([&] { rows_kernel().executable().prepare(arguments); }), {"a list of -1 tensors"}));
}

TEST_CASE("sequences keep the tensors of lists and order by them", "[api]") {
  const auto k = kernel("copies", [](List<In<f32, 1>, 3> xs, List<Out<f32, 1>, 3> ys) {
    const Index b = blocks(xs.size());
    store(ys[b], {0}, load(xs[b], {0}, {64}));
  });
  Sequence sequence(device);
  std::vector<f32> first;
  const Tensor<f32, 1> end(device, {64}), other(device, {64});
  {
    const auto a = line(64, 1), b = line(64, 2), c = line(64, 3);
    first = a.to_vector();
    sequence.add(k, std::vector{b, a}, std::vector{other, c});
    sequence.add(k, std::vector{b}, std::vector{b.slice(0, 0, 0)});
    sequence.add(k, std::vector{c}, std::vector{end});
  }
  CHECK(sequence.dependencies() == std::vector<std::vector<std::size_t>>{{}, {}, {0}});
  sequence.run(device.stream());
  CHECK(end.to_vector() == first);
}

// The operands of iteration k are in the tensors k of two lists, the left one's in its last 16 rows.
TEST_CASE("a pipelined loop multiplies tensors of lists", "[api]") {
  const auto k = kernel("last_rows", [](List<In<bf16, 2>, 8> xs, List<In<bf16, 2>, 8> ys, Out<f32, 2> y) {
    Var sum = zeros<f32>({16, 32});
    for (Index i : range(xs.size())) {
      const Index last = xs[i].extent(0) / 16 - 1;
      sum = mma(load(xs[i], {last, 0}, {16, 32}), load(ys[i], {0, 0}, {32, 32}), sum);
    }
    store(y, {0, 0}, sum);
  });
  std::vector<Tensor<bf16, 2>> xs, ys;
  std::vector<f32> expected(16 * 32);
  const auto filled = [&](std::int64_t rows, std::int64_t columns, int from) {
    std::vector<bf16> values;
    for (std::int64_t i = 0; i < rows * columns; ++i)
      values.push_back(static_cast<bf16>(static_cast<f32>((from + i * 5) % 7 - 3)));
    return device.tensor<bf16>({rows, columns}, values);
  };
  for (int i = 0; i < 5; ++i) {
    const std::int64_t rows = 16 * (1 + i % 3), inner = i == 3 ? 20 : 32;
    xs.push_back(filled(rows, inner, i));
    ys.push_back(filled(inner, 32, 2 * i));
    const std::vector<bf16> a = xs.back().to_vector(), b = ys.back().to_vector();
    for (std::int64_t r = 0; r < 16; ++r)
      for (std::int64_t c = 0; c < 32; ++c)
        for (std::int64_t n = 0; n < inner; ++n)
          expected[static_cast<std::size_t>(r * 32 + c)] +=
              static_cast<f32>(a[static_cast<std::size_t>((rows - 16 + r) * inner + n)]) *
              static_cast<f32>(b[static_cast<std::size_t>(n * 32 + c)]);
  }
  const Tensor<f32, 2> y(device, {16, 32});
  launch(device.stream(), k, xs, ys, y);
  CHECK(y.to_vector() == expected);
}

TEST_CASE("an Out list must be stored to", "[api]") {
  CHECK(says(error_of([] { kernel("lazy", [](In<f32, 1>, List<Out<f32, 1>, 2>) {}); }),
             {"nothing is stored to parameter 2"}));
}

TEST_CASE("many tensors and wide ones fit a launch", "[api]") {
  const auto k = kernel("many", [](List<In<f32, 1>, 200> xs, List<InOut<f32, 1>, 200> ys) {
    const Index b = blocks(xs.size());
    const Tile y = load(ys[b], {0}, {32});
    store(ys[b], {0}, load(xs[b], {0}, {32}) + y);
  });
  std::vector<Tensor<f32, 1>> xs, ys;
  for (int i = 0; i < 200; ++i) xs.push_back(line(1 + i % 32, i)), ys.push_back(line(1 + i % 32, i));
  launch(device.stream(), k, xs, ys);
  for (std::size_t i = 0; i < 200; ++i) {
    std::vector<f32> expected = xs[i].to_vector();
    for (f32& x : expected) x *= 2;
    INFO(i);
    CHECK(ys[i].to_vector() == expected);
  }
}

}  // namespace test_lists
