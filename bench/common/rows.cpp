#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "common/decode.hpp"
#include "common/join.hpp"
#include "common/products.hpp"
#include "common/typed.hpp"
#include "model/kernels.hpp"
#include "model/tiles.hpp"

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

/// Causal attention over a whole prompt, by the model's own kernel: queries, keys and values lie as GPT-2 has them.
Row attention(std::int64_t batch, std::int64_t positions, int heads, int head_width) {
  const std::int64_t width = std::int64_t{heads} * head_width;
  const double scale = 1 / std::sqrt(head_width), scores = static_cast<double>(batch * positions * positions) / 2;
  Row row{.op = "attention",
          .type = "bf16",
          .shape = {batch, positions, heads, head_width},
          .resource = Resource::bf16,
          .work = 4 * scores * static_cast<double>(width),
          .bytes = 2.0 * 4 * static_cast<double>(batch * positions * width),
          .allowed = allowed<bf16>};
  row.make = [=](const Device& device, const Turns& turns) {
    const AttentionTiles tiles = attention_tiles({.gpu = device.info().arch.has_value(),
                                                  .operands = ElementType::bf16,
                                                  .width = static_cast<int>(width),
                                                  .head_width = head_width});
    const Normal queries(1), keys(2), values(3);  // the keys and values beside the queries are not read
    const auto qkv = operands<bf16, 3>(device, turns, {batch, positions, 3 * width}, queries);
    const auto k = operands<bf16, 3>(device, turns, {batch, positions, width}, keys);
    const auto v = operands<bf16, 3>(device, turns, {batch, positions, width}, values);
    const auto y = results<bf16, 3>(device, turns, {batch, positions, width});
    const Tensor<i32, 1> past(device, {batch}), count(device, {batch});
    past.copy_from(std::vector<i32>(batch, 0));
    count.copy_from(std::vector<i32>(batch, static_cast<i32>(positions)));
    const auto reference = [=](std::int64_t index) {
      const std::int64_t column = index % width, head = column / head_width * head_width;
      const std::int64_t row = index / width, first = row / positions * positions;
      const auto at = [](const Normal& normal, std::int64_t i) { return static_cast<float>(bf16(normal[i])); };
      double norm = 0, sum = 0;
      for (std::int64_t position = first; position <= row; ++position) {
        double score = 0;
        for (int i = 0; i < head_width; ++i)
          score += static_cast<double>(at(queries, row * 3 * width + head + i)) * at(keys, position * width + head + i);
        const double p = std::exp(score * scale);
        norm += p, sum += p * at(values, position * width + column);
      }
      return sum / norm;
    };
    return std::make_unique<Captured>(
        device, turns,
        [=, kernel = kernels::attention<bf16>(heads, head_width, tiles.queries, tiles.keys)](
            const Stream& stream, int i) { launch(stream, kernel, qkv[i], k[i], v[i], past, count, y[i], scale); },
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
  if (small)
    rows.push_back(attention(2, 70, 2, 16));
  else
    for (const std::int64_t batch : {8, 2}) rows.push_back(attention(batch, 8192 / batch, 12, 64));
  rows.push_back(small ? decode(preset("nano"), Compute::bf16, 8) : decode(preset("gpt2"), Compute::bf16, 256));
  std::ranges::stable_partition(rows, [](const Row& row) { return row.group.empty(); });
  return rows;
}

}  // namespace tessera::bench
