// Tuning of the tiles that choose() selects, by kernels of the usual forms.
#pragma once
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "tessera/api/tunable.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {
namespace detail {

/// In memory, tf32 operands are f32.
template <class P>
using OperandInMemory = std::conditional_t<std::is_same_v<P, tf32>, f32, P>;
/// The accumulators of a matmul of operands P, and the result that usually follows.
template <class P>
using MatmulSum = std::conditional_t<std::is_same_v<P, f64>, f64,
                                     std::conditional_t<info(element_type<P>).kind == ElementKind::real, f32, i32>>;
template <class P>
using MatmulResult = std::conditional_t<std::is_same_v<P, f16> || std::is_same_v<P, bf16>, P,
                                        std::conditional_t<is_fp8(element_type<P>), bf16, MatmulSum<P>>>;

/// The accumulators for tile (m, n) of x w, with w [k,n], or [n,k] if `nk`.
template <class P>
Tile<MatmulSum<P>, 2> matmul_tile(const auto& x, const auto& w, const Index& m, const Index& n, bool nk,
                                  MatmulTiles tiles) {
  Var acc = zeros<MatmulSum<P>>({tiles.m, tiles.n});
  for (Index k : range(cdiv(x.extent(1), tiles.k))) {
    Tile left = load(x, {m, k}, {tiles.m, tiles.k});
    if (nk)
      acc = mma(cast<P>(left), cast<P>(transpose(load(w, {n, k}, {tiles.n, tiles.k}))), acc);
    else
      acc = mma(cast<P>(left), cast<P>(load(w, {k, n}, {tiles.k, tiles.n})), acc);
  }
  return acc;
}

/// y = x w, or gelu(x w + bias).
template <class P>
auto matmul_to_tune(MatmulFamily family, bool nk, MatmulTiles tiles) {
  using Held = OperandInMemory<P>;
  return kernel("matmul", [=](In<Held, 2> x, In<Held, 2> w, In<f32, 1> bias, Out<MatmulResult<P>, 2> y) {
    require(x.extent(1) == w.extent(nk ? 1 : 0), "inner extents are equal");
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    Tile acc = matmul_tile<P>(x, w, m, n, nk, tiles);
    if (family == MatmulFamily::plain)
      store(y, {m, n}, cast<MatmulResult<P>>(acc));
    else
      store(y, {m, n}, cast<MatmulResult<P>>(gelu_tanh(cast<f32>(acc) + load(bias, {n}, {tiles.n}))));
  });
}

/// y += x w.
template <class P>
auto residual_matmul_to_tune(bool nk, MatmulTiles tiles) {
  using Held = OperandInMemory<P>;
  return kernel("residual_matmul", [=](In<Held, 2> x, In<Held, 2> w, InOut<MatmulResult<P>, 2> y) {
    require(x.extent(1) == w.extent(nk ? 1 : 0), "inner extents are equal");
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    Tile acc = matmul_tile<P>(x, w, m, n, nk, tiles);
    Tile old = load(y, {m, n}, {tiles.m, tiles.n});
    store(y, {m, n}, cast<MatmulResult<P>>(cast<MatmulSum<P>>(old) + acc));
  });
}

/// A tensor of numbers from -1 to 1, or of all i8 or u8, that look random: they decide the power that a matmul takes.
template <class T, std::size_t R>
Tensor<T, static_cast<int>(R)> some_numbers(const Device& device, const std::int64_t (&extents)[R]) {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) count *= extent;
  std::vector<T> values(static_cast<std::size_t>(count));
  std::uint32_t state = 1;
  for (T& value : values) {
    state = state * 1664525u + 1013904223u;  // the linear congruential generator of Numerical Recipes
    if constexpr (std::is_integral_v<T>)
      value = static_cast<T>(state >> 24);
    else
      value = static_cast<T>(static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31f);
  }
  return device.template tensor<T>(extents, std::span<const T>(values));
}

template <class P>
std::vector<Config> matmul_configs(MatmulFamily family, const MatmulShape& shape, const Device& device) {
  return configs_of(matmul_candidates(family, shape, element_type<P>, device));
}

}  // namespace detail

/// Measures the tiles of a matmul y [m,n] = x [m,k] w of operands P, with an epilogue of the family, on numbers of its
/// own, and records the fastest: choose() then takes them for shapes of this class on this kind of device, and so do
/// models and tensor programs, in this process and in later ones. Throws Error as tune() does, and for a shape whose
/// operands a kernel computes.
///
///     tune_matmul<bf16>(MatmulFamily::activated, {.m = 512, .n = 3072, .k = 768}, device);
template <Element P>
TuneReport tune_matmul(MatmulFamily family, const MatmulShape& shape, const Device& device,
                       const TuneOptions& options = {}) {
  if (shape.computes_x || shape.computes_w)
    throw Error("tune_matmul: the shape's operands are computed by the kernel; tune that kernel by tune()");
  if (shape.m <= 0 || shape.n <= 0 || shape.k <= 0) throw Error("tune_matmul: an extent of the shape is not positive");
  using Held = detail::OperandInMemory<P>;
  using Result = detail::MatmulResult<P>;
  const auto x = detail::some_numbers<Held>(device, {shape.m, shape.k});
  const auto w = detail::some_numbers<Held>(device, {shape.nk ? shape.n : shape.k, shape.nk ? shape.k : shape.n});
  const std::vector<Config> configs = detail::matmul_configs<P>(family, shape, device);
  const bool nk = shape.nk;
  const auto measure = [&] {
    if (family == MatmulFamily::residual) {
      const Tunable tiles = tunable(
          [nk](int m, int n, int k) {
        return detail::residual_matmul_to_tune<P>(nk, {m, n, k});
          },
          configs);
      return tune(device.stream(), tiles, options, x, w, detail::some_numbers<Result>(device, {shape.m, shape.n}));
    }
    const Tunable tiles = tunable(
        [=](int m, int n, int k) {
      return detail::matmul_to_tune<P>(family, nk, {m, n, k});
        },
        configs);
    return tune(device.stream(), tiles, options, x, w, detail::some_numbers<f32>(device, {shape.n}),
                device.tensor<Result>({shape.m, shape.n}));
  };
  TuneReport report = measure();
  record_tiles(family, shape, element_type<P>, device, report);
  return report;
}

}  // namespace internal
}  // namespace tessera
