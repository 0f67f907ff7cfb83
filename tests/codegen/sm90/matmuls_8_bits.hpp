// Warp-specialized matmuls of 8-bit operands: kernels, operands and exact results, for the tests beside this file.
#pragma once
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "codegen/schedule/split_k.hpp"
#include "support/devices.hpp"
#include "support/emulating.hpp"
#include "support/plans.hpp"
#include "support/tensors.hpp"
#include "tessera/tessera.hpp"

namespace matmuls_8_bits {

using namespace tessera::internal;
using namespace tessera::internal::codegen;
using ::why_not;

inline std::string why_not(const Graph& traced, const Changes& change = {}) {
  return why_not(plan_with(traced, change));
}
inline Changes split(SplitK how) {
  return [=](Variant& variant) { variant.split_k = how; };
}
inline Changes along(std::size_t tensor, int axis) {
  return [=](Variant& variant) { variant.tensors[tensor].contiguous_axis = static_cast<std::int8_t>(axis); };
}
/// The tensor's rows begin at any multiple of so many bytes.
inline Changes unaligned(std::size_t tensor, int bytes = 1) {
  return [=](Variant& variant) {
    variant.tensors[tensor].alignment = variant.tensors[tensor].row_alignment = static_cast<std::int8_t>(bytes);
    variant.tensors[tensor].tma_addressable = false;
  };
}

// --- kernels: x is [m,k], w is [n,k]

template <class T>
using Sum = std::conditional_t<std::is_integral_v<T>, i32, f32>;

template <class T>
Tile<T, 2> left(const In<T, 2>& x, const Index& m, const Index& k, const MatmulTiles& tiles) {
  return load(x, {m, k}, {tiles.m, tiles.k});
}
template <class T>
Tile<T, 2> right(const In<T, 2>& w, const Index& n, const Index& k, const MatmulTiles& tiles) {
  return transpose(load(w, {n, k}, {tiles.n, tiles.k}));
}
template <class T>
Tile<Sum<T>, 2> product(const In<T, 2>& x, const In<T, 2>& w, const Index& m, const Index& n,
                        const MatmulTiles& tiles) {
  Var acc = zeros<Sum<T>>({tiles.m, tiles.n});
  for (Index k : range(cdiv(x.extent(1), tiles.k))) acc = mma(left(x, m, k, tiles), right(w, n, k, tiles), acc);
  return acc;
}

template <class T, class O>
auto plain(MatmulTiles tiles) {
  return kernel("plain", [=](In<T, 2> x, In<T, 2> w, Out<O, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    store(y, {m, n}, cast<O>(product(x, w, m, n, tiles)));
  });
}
/// With a scale for each row of x and each row of w.
template <class T, class O>
auto scaled(MatmulTiles tiles) {
  return kernel("scaled", [=](In<T, 2> x, In<T, 2> w, In<f32, 2> x_scale, In<f32, 1> w_scale, Out<O, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    const Tile sums = cast<f32>(product(x, w, m, n, tiles));
    store(y, {m, n}, cast<O>(sums * load(x_scale, {m, 0}, {tiles.m, 1}) * load(w_scale, {n}, {tiles.n})));
  });
}
/// The sums begin with a bias for each column.
template <class T>
auto biased(MatmulTiles tiles) {
  return kernel("biased", [=](In<T, 2> x, In<T, 2> w, In<Sum<T>, 1> bias, Out<Sum<T>, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    Var acc = zeros<Sum<T>>({tiles.m, tiles.n}) + load(bias, {n}, {tiles.n});
    for (Index k : range(cdiv(x.extent(1), tiles.k))) acc = mma(left(x, m, k, tiles), right(w, n, k, tiles), acc);
    store(y, {m, n}, acc);
  });
}
/// Two matmuls in one loop, which share x.
template <class T>
auto gated(MatmulTiles tiles) {
  return kernel("gated", [=](In<T, 2> x, In<T, 2> w, In<T, 2> v, Out<Sum<T>, 2> y, Out<Sum<T>, 2> z) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    Var gate = zeros<Sum<T>>({tiles.m, tiles.n}), up = zeros<Sum<T>>({tiles.m, tiles.n});
    for (Index k : range(cdiv(x.extent(1), tiles.k))) {
      const Tile a = left(x, m, k, tiles);
      gate = mma(a, right(w, n, k, tiles), gate);
      up = mma(a, right(v, n, k, tiles), up);
    }
    store(y, {m, n}, gate);
    store(z, {m, n}, up);
  });
}

// --- operands and results

enum class Numbers : std::uint8_t {
  small,     ///< whole, at most 7: sums of 128 products stay below 2^13, so wgmma sums them exactly
  positive,  ///< the same, from 1 on: sums of more products than 128 need more than the 14 bits that wgmma keeps
  all,       ///< all integers
  fractional,
};

struct Sizes {
  int m, n, k;
  Numbers numbers = Numbers::small;
  int gap = -1;  ///< elements after each row of operands; -1: up to the next multiple of 16
  unsigned seed = 0;
};

/// Operands, and their product in double precision, where it is exact for whole numbers.
template <class T>
class Problem {
 public:
  explicit Problem(const Sizes& of)
      : of_(of), stride_(of.k + (of.gap < 0 ? (16 - of.k % 16) % 16 : of.gap)), sums_(matrix()), sizes_(matrix()) {
    std::mt19937 random(static_cast<unsigned>(of.m * 31 + of.n * 7 + of.k) + of.seed);
    const std::vector<double> a = fill(x_, of.m, random), b = fill(w_, of.n, random);
    for (int i = 0; i < of.m; ++i)
      for (int j = 0; j < of.n; ++j) {
        double sum = 0, size = 0;
        for (int l = 0; l < of.k; ++l) {
          const double product = a[static_cast<std::size_t>(i * of.k + l)] * b[static_cast<std::size_t>(j * of.k + l)];
          sum += product;
          size += std::abs(product);
        }
        sums_[at(i, j)] = sum, sizes_[at(i, j)] = size;
      }
  }

  const Sizes& sizes() const { return of_; }
  /// On the test's device.
  Tensor<T, 2> x() const { return on_device(x_, of_.m); }
  Tensor<T, 2> w() const { return on_device(w_, of_.n); }
  Argument x_argument() { return argument(x_, of_.m); }
  Argument w_argument() { return argument(w_, of_.n); }
  /// The place of an element of x.
  std::size_t x_at(int i, int l) const { return static_cast<std::size_t>(i * stride_ + l); }
  std::vector<T>& x_values() { return x_; }

  using Expected = std::function<double(int i, int j, double sum)>;
  /// Empty, or the first element of y that differs from the one expected, rounded to its type.
  template <class O>
  std::string difference(const std::vector<O>& y, const Expected& expected) const {
    for (int i = 0; i < of_.m; ++i)
      for (int j = 0; j < of_.n; ++j) {
        const double exact = expected(i, j, sums_[at(i, j)]), found = number(y[at(i, j)]);
        const double rounded = std::is_integral_v<O> ? exact : number(O(static_cast<float>(exact)));
        if (found != rounded) return fmt::format("[{},{}] is {}, not {}", i, j, found, rounded);
      }
    return {};
  }
  template <class O>
  std::string difference(const std::vector<O>& y) const {
    return difference(y, [](int, int, double sum) { return sum; });
  }
  struct Errors {
    double most = 0, mean = 0;
  };
  /// Relative to the sum of the products' absolute values.
  Errors errors(const std::vector<f32>& y) const {
    Errors errors;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double error = std::abs(y[i] - sums_[i]) / sizes_[i];
      if (!(error <= errors.most)) errors.most = error;  // also NaN
      errors.mean += error / static_cast<double>(y.size());
    }
    return errors;
  }

 private:
  std::size_t at(int i, int j) const { return static_cast<std::size_t>(i * of_.n + j); }
  std::vector<double> matrix() const { return std::vector<double>(static_cast<std::size_t>(of_.m * of_.n)); }
  template <class E>
  static double number(E x) {
    if constexpr (std::is_integral_v<E>)
      return x;
    else
      return double{static_cast<float>(x)};
  }
  T one(std::mt19937& random) const {
    const int r = static_cast<int>(random() >> 4 & 0xffff);
    if constexpr (std::is_integral_v<T>)
      if (of_.numbers == Numbers::all) return static_cast<T>(r);
    if (of_.numbers == Numbers::fractional) return T(static_cast<float>(r - 0x8000) * 0x1p-14f);
    const bool positive = of_.numbers == Numbers::positive || std::is_same_v<T, u8>;
    return stored<T>(positive ? r % 7 + 1 : r % 15 - 7);
  }
  std::vector<double> fill(std::vector<T>& memory, int rows, std::mt19937& random) {
    memory.assign(static_cast<std::size_t>(rows * stride_), stored<T>(100));
    std::vector<double> values;
    for (int i = 0; i < rows; ++i)
      for (int l = 0; l < of_.k; ++l) values.push_back(number(memory[x_at(i, l)] = one(random)));
    return values;
  }
  Tensor<T, 2> on_device(const std::vector<T>& values, int rows) const {
    memory_.push_back(tensor<T, 1>({static_cast<std::int64_t>(values.size())}, values));
    return {test_device(), memory_.back().data(), {rows, of_.k}, {stride_, 1}};
  }
  Argument argument(std::vector<T>& values, int rows) const {
    Argument argument = dense_argument(values, {rows, stride_});
    argument.extent[1] = of_.k;
    return argument;
  }

  Sizes of_;
  int stride_;
  std::vector<T> x_, w_;
  std::vector<double> sums_, sizes_;
  mutable std::vector<Tensor<T, 1>> memory_;
};

template <class O>
std::vector<O> nines(const Sizes& of) {
  return std::vector<O>(static_cast<std::size_t>(of.m * of.n), stored<O>(99));
}
template <class O>
Tensor<O, 2> result(const Sizes& of) {
  return tensor<O, 2>({of.m, of.n}, nines<O>(of));
}
template <class O>
std::vector<O> multiples(int count, int modulus, double step = 1) {
  std::vector<O> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<O>((i % modulus - modulus / 2) * step));
  return values;
}
inline std::string text(const MatmulTiles& tiles, const Sizes& of) {
  return fmt::format("tiles of [{},{}] by {}, {}x{}x{}", tiles.m, tiles.n, tiles.k, of.m, of.n, of.k);
}

}  // namespace matmuls_8_bits
