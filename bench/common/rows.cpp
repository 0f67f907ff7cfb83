#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "common/attention.hpp"
#include "common/decode.hpp"
#include "common/join.hpp"
#include "common/products.hpp"
#include "common/typed.hpp"
#include "model/kernels.hpp"

namespace tessera::bench {
namespace {

constexpr int elements_per_block = 4096;  // of kernels that go through memory once

auto copy_kernel() {
  return kernel("copy", [](In<f32, 1> x, Out<f32, 1> y) {
    Index block = blocks(cdiv(x.extent(0), elements_per_block));
    store(y, {block}, load(x, {block}, {elements_per_block}));
  });
}

auto gelu_kernel() {
  return kernel("gelu", [](In<f32, 1> x, Out<f32, 1> y) {
    Index block = blocks(cdiv(x.extent(0), elements_per_block));
    store(y, {block}, kernels::gelu(load(x, {block}, {elements_per_block})));
  });
}

template <Element T>
auto layer_norm_kernel(int width) {
  return kernel("layer_norm", [=](In<T, 2> x, In<T, 1> weight, In<T, 1> bias, Out<T, 2> y, Scalar<f32> epsilon) {
    Index row = blocks(x.extent(0));
    Tile in = cast<f32>(load(x, {row, 0}, {1, width}));
    Tile centered = in - sum(in, 1) / width;
    Tile rstd = rsqrt(sum(centered * centered, 1) / width + epsilon);
    Tile scale = cast<f32>(load(weight, {0}, {width})), shift = cast<f32>(load(bias, {0}, {width}));
    store(y, {row, 0}, cast<T>(centered * rstd * scale + shift));
  });
}

/// y = f(x), element by element.
Row pointwise(std::string op, std::int64_t size, auto make_kernel, double (*reference)(double)) {
  const double bytes = 8.0 * static_cast<double>(size);
  Row row{.op = std::move(op), .type = "f32", .shape = {size}, .work = bytes, .bytes = bytes, .allowed = allowed<f32>};
  row.make = [=](const Device& device, const Turns& turns) {
    const Normal normal(1);
    const auto x = operands<f32, 1>(device, turns, {size}, normal);
    const auto y = results<f32, 1>(device, turns, {size});
    return std::make_unique<Captured>(
        device, turns, [=, kernel = make_kernel()](const Stream& stream, int i) { launch(stream, kernel, x[i], y[i]); },
        [=] { return error_of(y.back(), [&](std::int64_t i) { return reference(normal[i]); }); });
  };
  return row;
}

template <Element T>
Row layer_norm(std::int64_t height, int width) {
  const double bytes = 2.0 * sizeof(T) * static_cast<double>(height) * width, epsilon = 1e-5;
  Row row{.op = "layer_norm",
          .type = type_name<T>,
          .shape = {height, width},
          .work = bytes,
          .bytes = bytes,
          .allowed = allowed<T>};
  row.make = [=](const Device& device, const Turns& turns) {
    const Normal normal(1), scale(2), shift(3);
    const auto x = operands<T, 2>(device, turns, {height, width}, normal);
    const auto weight = tensor_of<T, 1>(device, {width}, scale), bias = tensor_of<T, 1>(device, {width}, shift);
    const auto y = results<T, 2>(device, turns, {height, width});
    const auto reference = [=](std::int64_t index) {
      const auto at = [&](std::int64_t i) { return static_cast<float>(T(normal[index / width * width + i])); };
      double mean = 0, variance = 0;
      for (int i = 0; i < width; ++i) mean += at(i) / static_cast<double>(width);
      for (int i = 0; i < width; ++i) variance += (at(i) - mean) * (at(i) - mean) / width;
      const std::int64_t i = index % width;
      return (at(i) - mean) / std::sqrt(variance + epsilon) * static_cast<float>(T(scale[i])) +
             static_cast<float>(T(shift[i]));
    };
    return std::make_unique<Captured>(
        device, turns,
        [=, kernel = layer_norm_kernel<T>(width)](const Stream& stream, int i) {
      launch(stream, kernel, x[i], weight, bias, y[i], epsilon);
        },
        [=] { return error_of(y.back(), reference); });
  };
  return row;
}

}  // namespace

std::string Row::name() const {
  return fmt::format("{}{}{}-{}-{}{}{}", group, group.empty() ? "" : "-", op, type, join(shape, "x"),
                     form.empty() ? "" : "-", form);
}

std::vector<Row> rows(const RowSettings& settings) {
  const auto identity = [](double x) { return x; };
  const bool small = settings.small;
  std::vector<Row> rows{pointwise("copy", small ? 5000 : std::int64_t{1} << 27, copy_kernel, identity),
                        pointwise("gelu", small ? 5000 : 32 * 512 * 768, gelu_kernel, gelu),
                        small ? layer_norm<f32>(7, 160) : layer_norm<f32>(65536, 1600),
                        small ? layer_norm<bf16>(7, 160) : layer_norm<bf16>(65536, 1600)};
  std::ranges::move(product_rows(settings), std::back_inserter(rows));
  std::ranges::move(attention_rows(settings), std::back_inserter(rows));
  rows.push_back(small ? decode(preset("nano"), Compute::bf16, 8) : decode(preset("gpt2"), Compute::bf16, 256));
  std::ranges::stable_partition(rows, [](const Row& row) { return row.group.empty(); });
  return rows;
}

}  // namespace tessera::bench
