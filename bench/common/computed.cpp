#include "common/computed.hpp"

#include "common/computed_products.hpp"
#include "common/typed.hpp"

namespace tessera::internal::bench {
namespace {

/// `make_call` returns, for tiles on a device, the function that launches the kernel on x, w and y; `left(row, k)` is
/// the reference for an element of the left operand.
Row computed(std::string op, const MatmulShape& e, std::optional<MatmulTiles> tiles, const Normal& x_numbers,
             auto make_call, auto left) {
  const auto real = [](auto value) { return static_cast<double>(value); };
  Row row{.op = std::move(op),
          .type = "f32",
          .shape = {e.m, e.n, e.k},
          .resource = Resource::bf16,
          .work = 2 * real(e.m) * real(e.n) * real(e.k),
          .bytes = 4 * real(e.m * e.k) + 2 * real(e.k * e.n + e.m * e.n),
          .allowed = allowed<bf16>,
          .tiled = true};
  row.make = [=](const Device& device, const Turns& turns) {
    const Normal right(2, static_cast<float>(1 / std::sqrt(real(e.k))));
    const auto x = operands<f32, 2>(device, turns, {e.m, e.k}, x_numbers);
    const auto w = operands<bf16, 2>(device, turns, {e.k, e.n}, right);
    const auto y = results<bf16, 2>(device, turns, {e.m, e.n});
    const auto reference = [=](std::int64_t index) {
      const auto operand = left(index / e.n);
      double sum = 0;
      for (std::int64_t k = 0; k < e.k; ++k) sum += operand(k) * static_cast<float>(bf16(right[k * e.n + index % e.n]));
      return sum;
    };
    const MatmulShape shape{.m = e.m, .n = e.n, .k = e.k, .computes_x = true};
    const MatmulTiles chosen = tiles ? *tiles : choose<bf16>(MatmulFamily::plain, shape, device);
    return std::make_unique<Captured>(
        device, turns,
        [=, call = make_call(chosen, device)](const Stream& stream, int i) { call(stream, x[i], w[i], y[i]); },
        [=] { return error_of(y.back(), reference); });
  };
  return row;
}

}  // namespace

Row linear_cast(const MatmulShape& shape, std::optional<MatmulTiles> tiles) {
  const Normal numbers(1);
  return computed("linear_cast", shape, tiles, numbers, [](const MatmulTiles& chosen, const Device&) {
    return [kernel = kernels::linear_cast(chosen)](const Stream& stream, const auto& x, const auto& w, const auto& y) {
      launch(stream, kernel, x, w, y);
    };
  }, [=](std::int64_t row) {
    return [=](std::int64_t k) { return static_cast<double>(static_cast<float>(bf16(numbers[row * shape.k + k]))); };
  });
}

Row linear_norm(const MatmulShape& shape, std::optional<MatmulTiles> tiles) {
  const Normal numbers(1), weights(3), biases(4);
  constexpr float epsilon = 1e-5F;
  return computed("linear_norm", shape, tiles, numbers, [=](const MatmulTiles& chosen, const Device& device) {
    const Tensor<f32, 2> mean(device, {shape.m, 1}), rstd(device, {shape.m, 1});
    return
        [=, moments = kernels::row_moments(static_cast<int>(shape.k)), kernel = kernels::linear_norm(chosen),
         weight = tensor_of<f32, 1>(device, {shape.k}, weights), bias = tensor_of<f32, 1>(device, {shape.k}, biases)](
            const Stream& stream, const auto& x, const auto& w, const auto& y) {
      launch(stream, moments, x, mean, rstd, epsilon);
      launch(stream, kernel, x, mean, rstd, weight, bias, w, y);
        };
  }, [=](std::int64_t row) {
    double mean = 0, variance = 0;
    const auto at = [=](std::int64_t k) { return static_cast<double>(numbers[row * shape.k + k]); };
    for (std::int64_t k = 0; k < shape.k; ++k) mean += at(k) / static_cast<double>(shape.k);
    for (std::int64_t k = 0; k < shape.k; ++k)
      variance += (at(k) - mean) * (at(k) - mean) / static_cast<double>(shape.k);
    return [=](std::int64_t k) {
      return (at(k) - mean) / std::sqrt(variance + epsilon) * static_cast<double>(weights[k]) +
             static_cast<double>(biases[k]);
    };
  });
}

namespace {

/// `make_call` returns, for tiles on a device, the function that launches the kernel on x, w and y; w is of integers
/// with the extents `of_w`, and weight(k, column) is the reference for an element.
template <Element W>
Row dequantized(std::string op, const MatmulShape& e, std::array<std::int64_t, 2> of_w,
                std::optional<MatmulTiles> tiles, const Normal& numbers, auto make_call, auto weight) {
  const auto real = [](auto value) { return static_cast<double>(value); };
  Row row{.op = std::move(op),
          .type = "bf16",
          .form = e.nk ? "nk" : "",
          .shape = {e.m, e.n, e.k},
          .resource = Resource::bf16,
          .work = 2 * real(e.m) * real(e.n) * real(e.k),
          .bytes = 2 * real(e.m * e.k) + real(of_w[0] * of_w[1]) + 2 * real(e.m * e.n),
          .allowed = allowed<bf16>,
          .tiled = true};
  const MatmulShape shape{.m = e.m, .n = e.n, .k = e.k, .nk = e.nk, .computes_w = true};
  row.make = [=](const Device& device, const Turns& turns) {
    const Normal left(1);
    const auto x = operands<bf16, 2>(device, turns, {e.m, e.k}, left);
    const auto w = operands<W, 2>(device, turns, of_w, numbers);
    const auto y = results<bf16, 2>(device, turns, {e.m, e.n});
    const auto reference = [=](std::int64_t index) {
      double sum = 0;
      for (std::int64_t k = 0; k < e.k; ++k)
        sum += real(static_cast<float>(bf16(left[index / e.n * e.k + k]))) * weight(k, index % e.n);
      return sum;
    };
    return std::make_unique<Captured>(
        device, turns,
        [=, call = make_call(tiles ? *tiles : choose<bf16>(MatmulFamily::plain, shape, device), device)](
            const Stream& stream, int i) { call(stream, x[i], w[i], y[i]); },
        [=] { return error_of(y.back(), reference); });
  };
  return row;
}

}  // namespace

// Tiles of i8 [n,k] have rows of 128 bytes or more.
Row linear_i8(const MatmulShape& e, std::optional<MatmulTiles> tiles) {
  const Normal numbers(2, 20), scales(3, static_cast<float>(0.05 / std::sqrt(static_cast<double>(e.k))));
  return dequantized<i8>(
      "linear_i8", e, e.nk ? std::array{e.n, e.k} : std::array{e.k, e.n}, tiles, numbers,
      [=](MatmulTiles chosen, const Device& device) {
    if (e.nk) chosen.k = std::max(chosen.k, 128);
    return [kernel = kernels::linear_i8(chosen, e.nk), scale = tensor_of<f32, 1>(device, {e.n}, scales)](
               const Stream& stream, const auto& x, const auto& w, const auto& y) {
      launch(stream, kernel, x, w, scale, y);
    };
      },
      [=](std::int64_t k, std::int64_t column) {
    const auto w = static_cast<i8>(numbers[static_cast<std::size_t>(e.nk ? column * e.k + k : k * e.n + column)]);
    return static_cast<double>(w) * scales[static_cast<std::size_t>(column)];
  });
}

Row linear_i4(const MatmulShape& e, std::optional<MatmulTiles> tiles) {
  constexpr int group = 64;
  const Normal numbers(2, 20, 128), scales(3, static_cast<float>(0.2 / std::sqrt(static_cast<double>(e.k))));
  const std::int64_t groups = (e.k + group - 1) / group;
  return dequantized<u8>(
      "linear_i4", e, {e.k / 2, e.n}, tiles, numbers,
      [=](MatmulTiles chosen, const Device& device) {
    chosen.k = group;
    return [kernel = kernels::linear_i4(chosen), scale = tensor_of<f32, 2>(device, {groups, e.n}, scales)](
               const Stream& stream, const auto& x, const auto& w, const auto& y) {
      launch(stream, kernel, x, w, scale, y);
    };
      },
      [=](std::int64_t k, std::int64_t column) {
    const auto both = static_cast<u8>(numbers[static_cast<std::size_t>(k / 2 * e.n + column)]);
    const double scale = scales[static_cast<std::size_t>(k / group * e.n + column)];
    return static_cast<float>(bf16(static_cast<float>(((both >> k % 2 * 4 & 15) - 8) * scale)));
  });
}

}  // namespace tessera::internal::bench
