#include "common/gather_rows.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "common/gather_kernels.hpp"
#include "common/gather_loops.hpp"
#include "common/operands.hpp"
#include "common/timed.hpp"

namespace tessera::internal::bench {
namespace {

using Call = Timed::Call;

/// `bytes` is what a call reads and writes at least. `start` creates the data and returns our call, the loop, and the
/// error of their results.
struct Sides {
  Call ours, loop;
  std::function<double()> error;
};
Row row_of(std::string op, std::string type, std::vector<std::int64_t> shape, double bytes, double allowed,
           std::function<Sides(const Device&)> start) {
  Row row{.op = std::move(op),
          .type = std::move(type),
          .group = "gather",
          .shape = std::move(shape),
          .work = bytes,
          .bytes = bytes,
          .allowed = allowed};
  row.beside_loop = [start = std::move(start)](const Device& device) {
    const Sides sides = start(device);
    return std::pair<std::unique_ptr<Workload>, std::unique_ptr<Workload>>(
        std::make_unique<Timed>(sides.ours, sides.error), std::make_unique<Timed>(sides.loop));
  };
  return row;
}

template <class T, int R>
Tensor<T, R> tensor_with(const Device& device, const std::array<std::int64_t, R>& extents,
                         const std::vector<T>& values) {
  Tensor<T, R> tensor(device, extents);
  tensor.copy_from(values);
  return tensor;
}

/// The largest difference, relative to the expected value where that is above 1.
template <class T, class U>
double largest_difference(const std::vector<T>& results, const std::vector<U>& expected) {
  double worst = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto is = static_cast<double>(results[i]), wanted = static_cast<double>(expected[i]);
    const double difference = std::abs(is - wanted) / std::max(1.0, std::abs(wanted));
    worst = difference <= worst ? worst : std::isnan(difference) ? INFINITY : difference;
  }
  return worst;
}

/// Rows of 0 to 2 * mean nonzeros, in random columns.
loops::Csr matrix(std::int64_t rows, int mean) {
  std::mt19937 generator(1);
  const Normal normal(1);
  loops::Csr a{.offsets = {0}, .columns = {}, .values = {}};
  int count = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    // Two rows together have twice the mean; the last of an odd number has the mean itself.
    count = row % 2           ? 2 * mean - count
            : row + 1 == rows ? mean
                              : static_cast<int>(generator() % (2 * static_cast<unsigned>(mean) + 1));
    for (int k = 0; k < count; ++k) {
      a.columns.push_back(static_cast<i32>(generator() % static_cast<std::uint64_t>(rows)));
      a.values.push_back(normal[a.values.size()]);
    }
    a.offsets.push_back(static_cast<i32>(a.columns.size()));
  }
  return a;
}

Row csr(const std::string& op, std::int64_t rows, int mean, const auto& kernel) {
  const std::int64_t nonzeros = rows * mean;
  const double bytes = static_cast<double>(nonzeros) * 8 + static_cast<double>(rows) * 12;
  return row_of(op, "f32", {rows, nonzeros}, bytes, 1e-4, [=](const Device& device) {
    const auto a = std::make_shared<loops::Csr>(matrix(rows, mean));
    const Normal normal(2);
    std::vector<f32> x(static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = normal[i];
    const auto expected = std::make_shared<std::vector<f32>>(x.size());
    const auto offsets = tensor_with<i32, 1>(device, {rows + 1}, a->offsets);
    const auto columns = tensor_with<i32, 1>(device, {nonzeros}, a->columns);
    const auto values = tensor_with<f32, 1>(device, {nonzeros}, a->values);
    const auto factor = tensor_with<f32, 1>(device, {rows}, x);
    const auto y = poisoned<f32, 1>(device, {rows});
    return Sides{[=] { launch(device.stream(), kernel, offsets, columns, values, factor, y); },
                 [=] { loops::multiply(*a, x.data(), expected->data()); },
                 [=] { return largest_difference(y.to_vector(), *expected); }};
  });
}

/// Its error is the share of points whose iteration counts differ: the loop uses fused multiply-adds.
Row mandelbrot(int height, int width) {
  constexpr int rounds = 256;
  const double bytes = 4.0 * height * width;
  return row_of("mandelbrot", "f32", {height, width}, bytes, 1e-2, [=](const Device& device) {
    const float step = 3.5f / static_cast<float>(width), left = -2.5f, top = -step * static_cast<float>(height) / 2;
    const auto expected = std::make_shared<std::vector<i32>>(static_cast<std::size_t>(height * width));
    const auto count = poisoned<i32, 2>(device, {height, width});
    return Sides{
        [=, kernel = mandelbrot_kernel(16, 32, rounds)] { launch(device.stream(), kernel, count, left, top, step); },
        [=] { loops::mandelbrot(expected->data(), height, width, left, top, step, rounds); },
        [=] {
      const std::vector<i32> counts = count.to_vector();
      double differ = 0;
      for (std::size_t i = 0; i < counts.size(); ++i) differ += counts[i] != (*expected)[i];
      return differ / static_cast<double>(counts.size());
        }};
  });
}

/// From two thirds of the size; an error of 1 is a color that differs by 1 of 255, as rounding may cause.
Row bilinear(int height, int width) {
  const int from_height = height * 2 / 3, from_width = width * 2 / 3;
  const double bytes = 3.0 * height * width + 3.0 * from_height * from_width;
  return row_of("bilinear", "u8", {height, width, 3}, bytes, 1, [=](const Device& device) {
    std::mt19937 generator(1);
    const auto image = std::make_shared<std::vector<u8>>(static_cast<std::size_t>(from_height * from_width * 3));
    for (u8& color : *image) color = static_cast<u8>(generator());
    const auto expected = std::make_shared<std::vector<u8>>(static_cast<std::size_t>(height * width * 3));
    const auto in = tensor_with<u8, 3>(device, {from_height, from_width, 3}, *image);
    const Tensor<u8, 3> out(device, {height, width, 3});
    const float scale_y = static_cast<float>(from_height) / static_cast<float>(height);
    const float scale_x = static_cast<float>(from_width) / static_cast<float>(width);
    return Sides{[=, kernel = bilinear_kernel(16, 64)] { launch(device.stream(), kernel, in, out, scale_y, scale_x); },
                 [=] {
      loops::bilinear(image->data(), from_height, from_width, expected->data(), height, width, scale_y, scale_x);
                 },
                 [=] {
      const std::vector<u8> colors = out.to_vector();
      int worst = 0;
      for (std::size_t i = 0; i < colors.size(); ++i) worst = std::max(worst, std::abs(colors[i] - (*expected)[i]));
      return worst;
    }};
  });
}

/// One pass of a radix sort, on 8 bits.
Row radix_pass(std::int64_t size) {
  return row_of("radix_pass", "u32", {size}, static_cast<double>(size) * 12, 0, [=](const Device& device) {
    constexpr int part = 4096, shift = 8;
    const std::int64_t parts = (size + part - 1) / part;
    std::mt19937 generator(1);
    const auto keys = std::make_shared<std::vector<u32>>(static_cast<std::size_t>(size));
    for (u32& key : *keys) key = static_cast<u32>(generator());
    const auto expected = std::make_shared<std::vector<u32>>(keys->size());
    const auto in = tensor_with<u32, 1>(device, {size}, *keys);
    const Tensor<u32, 1> out(device, {size});
    const Tensor<i32, 2> counts(device, {256, parts}), offsets(device, {256, parts});
    return Sides{[=, count = count_digits_kernel(part, shift), sum = digit_offsets_kernel(static_cast<int>(parts)),
                  spread = spread_digits_kernel(part, shift)] {
      launch(device.stream(), count, in, counts);
      launch(device.stream(), sum, counts, offsets);
      launch(device.stream(), spread, in, offsets, out);
                 },
                 [=] { loops::radix_pass(keys->data(), expected->data(), size, shift); },
                 [=] { return largest_difference(out.to_vector(), *expected); }};
  });
}

Row transpose(int rows, int columns) {
  return row_of("transpose", "f32", {rows, columns}, 8.0 * rows * columns, 0, [=](const Device& device) {
    const Normal normal(1);
    const auto in = tensor_of<f32, 2>(device, {rows, columns}, normal);
    const auto out = poisoned<f32, 2>(device, {columns, rows});
    const auto matrix = std::make_shared<std::vector<f32>>(in.to_vector());
    const auto expected = std::make_shared<std::vector<f32>>(matrix->size());
    return Sides{[=, kernel = transposed_kernel(64)] { launch(device.stream(), kernel, in, out); }, [=] {
      loops::transpose(matrix->data(), expected->data(), rows, columns);
    }, [=] { return largest_difference(out.to_vector(), *expected); }};
  });
}

}  // namespace

std::vector<Row> gather_rows(bool small) {
  const std::int64_t nonzeros = small ? 1024 : 1'000'000;
  std::vector<Row> rows;
  for (const int mean : {64, 16}) {
    rows.push_back(csr("csr_rows", nonzeros / mean, mean, csr_rows_kernel(mean)));
    rows.push_back(csr("csr_lanes", nonzeros / mean, mean, csr_lanes_kernel(512)));
  }
  rows.push_back(small ? mandelbrot(27, 48) : mandelbrot(1080, 1920));
  rows.push_back(small ? bilinear(27, 48) : bilinear(1080, 1920));
  rows.push_back(radix_pass(small ? 10000 : 1'000'000));
  rows.push_back(small ? transpose(70, 130) : transpose(2048, 2048));
  return rows;
}

}  // namespace tessera::internal::bench
