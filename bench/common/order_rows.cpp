#include "common/order_rows.hpp"

#include <algorithm>
#include <numeric>

#include "common/order_kernels.hpp"
#include "common/typed.hpp"

namespace tessera::internal::bench {
namespace {

Row row_of(std::string op, std::string type, std::vector<std::int64_t> shape, double bytes, double allowed) {
  return {.op = std::move(op),
          .type = std::move(type),
          .group = "order",
          .shape = std::move(shape),
          .work = bytes,
          .bytes = bytes,
          .allowed = allowed};
}

template <class T, int R>
Sets<T, R> filled(const Device& device, const Turns& turns, const std::array<std::int64_t, R>& extents, T value = 0) {
  Sets<T, R> sets;
  for (int set = 0; set < turns.sets; ++set) {
    sets.emplace_back(device, extents);
    sets.back().copy_from(std::vector<T>(static_cast<std::size_t>(sets.back().size()), value));
  }
  return sets;
}

/// Sorted elements and their original positions: checked by the positions.
Row sort(std::int64_t rows, std::int64_t width) {
  const double size = static_cast<double>(rows * width);
  Row row = row_of("sort", "f32", {rows, width}, size * 12, 0);
  row.make = [=](const Device& device, const Turns& turns) {
    const Normal normal(1);
    const auto x = operands<f32, 2>(device, turns, {rows, width}, normal);
    const auto y = results<f32, 2>(device, turns, {rows, width});
    const auto at = filled<i32, 2>(device, turns, {rows, width}, -1);
    const auto kernel = sort_kernel(static_cast<int>(width), width <= 1024 ? 4 : 1);
    const auto place = [=](std::int64_t i) {
      std::vector<std::int64_t> order(static_cast<std::size_t>(width));
      std::iota(order.begin(), order.end(), i / width * width);
      std::ranges::stable_sort(order, {}, [&](std::int64_t j) { return normal[static_cast<std::size_t>(j)]; });
      return static_cast<double>(order[static_cast<std::size_t>(i % width)] % width);
    };
    return std::make_unique<Captured>(
        device, turns, [=](const Stream& stream, int i) { launch(stream, kernel, x[i], y[i], at[i]); },
        [=] { return error_of(at.back(), place); });
  };
  return row;
}

/// How often each 8-bit number occurs: checked to be exact.
Row histogram(std::int64_t size) {
  Row row = row_of("histogram", "u8", {size}, static_cast<double>(size), 0);
  row.make = [=](const Device& device, const Turns& turns) {
    std::vector<u8> numbers(static_cast<std::size_t>(size));
    std::vector<double> expected(256);
    std::uint64_t state = 1;
    for (u8& number : numbers) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      number = static_cast<u8>(state >> 56);
      ++expected[number];
    }
    Sets<u8, 1> x;
    for (int set = 0; set < turns.sets; ++set) {
      x.emplace_back(device, std::array{size});
      x.back().copy_from(numbers);
    }
    const auto counts = filled<i32, 1>(device, turns, {256}, -1);
    const int part = static_cast<int>(std::min<std::int64_t>(size, 16384));
    return std::make_unique<Captured>(
        device, turns,
        [=, clear = clear_kernel(), kernel = histogram_kernel(part, 132 * 4)](const Stream& stream, int i) {
      launch(stream, clear, counts[i]);
      launch(stream, kernel, x[i], counts[i]);
        },
        [=] { return error_of(counts.back(), [&](std::int64_t i) { return expected[static_cast<std::size_t>(i)]; }); });
  };
  return row;
}

/// Inclusive sums over a long vector.
Row running_sums(std::int64_t size) {
  Row row = row_of("cumsum", "f32", {size}, static_cast<double>(size) * 8, allowed<f32>);
  row.make = [=](const Device& device, const Turns& turns) {
    const Normal normal(1);
    const auto x = operands<f32, 1>(device, turns, {size}, normal);
    const auto y = results<f32, 1>(device, turns, {size});
    const int part = static_cast<int>(std::min<std::int64_t>(size, 8192));
    const std::int64_t parts = (size + part - 1) / part;
    const auto next = filled<i32, 1>(device, turns, {1});
    const auto words = filled<u64, 1>(device, turns, {parts});
    const auto reset = tessera::internal::kernel("reset", [](Out<i32, 1> first, Out<u64, 1> all) {
      Index block = blocks(cdiv(all.extent(0), 1024));
      if_(block == 0, [&] { store(first, {0}, zeros<i32>({1})); });
      store(all, {block}, zeros<u64>({1024}));
    });
    const auto sums = std::make_shared<std::vector<double>>();  // up to each part
    const auto reference = [=](std::int64_t i) {
      const auto at = [&](std::int64_t j) { return static_cast<double>(normal[static_cast<std::size_t>(j)]); };
      if (sums->empty()) {
        double sum = 0;
        for (std::int64_t j = 0; j < size; ++j) {
          if (j % part == 0) sums->push_back(sum);
          sum += at(j);
        }
      }
      double sum = (*sums)[static_cast<std::size_t>(i / part)];
      for (std::int64_t j = i / part * part; j <= i; ++j) sum += at(j);
      return sum;
    };
    return std::make_unique<Captured>(
        device, turns,
        [=, kernel = running_sum_kernel(part)](const Stream& stream, int i) {
      launch(stream, reset, next[i], words[i]);
      launch(stream, kernel, x[i], y[i], next[i], words[i]);
        },
        [=] { return error_of(y.back(), reference); });
  };
  return row;
}

}  // namespace

std::vector<Row> order_rows(bool small) {
  std::vector<Row> rows;
  rows.push_back(small ? sort(7, 160) : sort(65536, 1024));
  rows.push_back(histogram(small ? 1 << 15 : 1 << 28));
  rows.push_back(running_sums(small ? 10000 : 1 << 26));
  return rows;
}

}  // namespace tessera::internal::bench
