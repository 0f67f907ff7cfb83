// An independent definition of the language, for tests: arrays of exact numbers, every op on them as the header of
// ops.def describes it, and a way to run the same op on a device with types, ranks and shapes chosen at run time.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "graph/evaluate.hpp"
#include "reference/numbers.hpp"
#include "support/devices.hpp"
#include "tessera/graph/op.hpp"
#include "tessera/tessera.hpp"

namespace oracle {

using namespace tessera::internal;
using namespace numbers;
using numbers::binary;
using numbers::ternary;
using numbers::unary;
using Extents = std::vector<int>;
using Rng = std::mt19937_64;

inline constexpr ElementType all_types[] = {
#define TYPE(name, ...) ElementType::name,
#include "tessera/graph/types.def"
};

template <class N>
N between(Rng& rng, N low, N high) {
  if constexpr (std::integral<N>)
    return std::uniform_int_distribution<N>(low, high)(rng);
  else
    return std::uniform_real_distribution<N>(low, high)(rng);
}
inline bool chance(Rng& rng, int percent) { return between(rng, 0, 99) < percent; }
template <class C>
const auto& one_of(Rng& rng, const C& choices) {
  return choices[between<std::size_t>(rng, 0, choices.size() - 1)];
}

// Arrays
// -----------------------------------------------------------------------------------------------------------------

inline std::int64_t size_of(const Extents& shape) {
  std::int64_t size = 1;
  for (int extent : shape) size *= extent;
  return size;
}
inline std::string text_of(const Extents& shape) {
  std::string text = "[";
  for (int extent : shape) text += (text.size() > 1 ? "," : "") + std::to_string(extent);
  return text + "]";
}

/// A tile or a dense tensor: `real` holds the elements of real types, `whole` those of the others, row-major.
struct Array {
  ElementType type = ElementType::f32;
  Extents shape;
  std::vector<Real> real;
  std::vector<i64> whole;

  Array() = default;
  Array(ElementType element, Extents extents) : type(element), shape(std::move(extents)) {
    (is_real(type) ? real.resize(size()) : whole.resize(size()));
  }
  std::size_t size() const { return static_cast<std::size_t>(size_of(shape)); }
  int rank() const { return static_cast<int>(shape.size()); }
  /// Element i of this becomes element j of the other, of the same type.
  void take(std::size_t i, const Array& other, std::size_t j) {
    if (is_real(type))
      real[i] = other.real[j];
    else
      whole[i] = other.whole[j];
  }
  Real as_real(std::size_t i) const { return is_real(type) ? real[i] : Real(number_in(type, whole[i])); }
};

inline Array reals(Extents shape, std::vector<Real> values) {
  Array a(ElementType::f32, std::move(shape));
  a.real = std::move(values);
  return a;
}
inline Array wholes(ElementType type, Extents shape, std::vector<i64> values) {
  Array a(type, std::move(shape));
  a.whole = std::move(values);
  return a;
}

inline Array filled(ElementType type, Extents shape, const std::function<double(std::size_t)>& value) {
  Array a(type, std::move(shape));
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (is_real(type))
      a.real[i] = rounded(value(i), type);
    else
      a.whole[i] = wrapped(static_cast<i64>(value(i)), a.type);
  }
  return a;
}

/// Values in [low, high] that the type represents; positive ranges of many decades are filled decade by decade.
inline Array random_array(Rng& rng, ElementType type, Extents shape, double low, double high) {
  return filled(type, std::move(shape), [&](std::size_t) {
    if (!is_real(type))
      return static_cast<double>(
          between(rng, std::max(static_cast<i64>(low), lowest_of(type)), static_cast<i64>(high)));
    if (low > 0 && high / low > 1e3)
      return std::clamp(std::exp(between(rng, std::log(low), std::log(high))), low, high);
    return between(rng, low, high);
  });
}
/// Any integer of the type, often the extremes and small ones.
inline Array random_bits_array(Rng& rng, ElementType type, Extents shape) {
  Array a(type, std::move(shape));
  for (i64& x : a.whole) {
    const int kind = between(rng, 0, 5);
    x = kind == 0   ? between<i64>(rng, -3, 3)
        : kind == 1 ? lowest_of(type) + between<i64>(rng, 0, 2)
        : kind == 2 ? highest_of(type) - between<i64>(rng, 0, 1)
                    : static_cast<i64>(rng());
    x = wrapped(x, type);
  }
  return a;
}

/// Element numbers of an array of shape `from` for each element of shape `to`, broadcast by NumPy's rule.
inline std::vector<std::size_t> stretched(const Extents& from, const Extents& to) {
  std::vector<std::size_t> index(static_cast<std::size_t>(size_of(to)));
  for (std::size_t i = 0; i < index.size(); ++i) {
    std::size_t rest = i, stride = 1, at = 0;
    for (std::size_t axis = to.size(); axis-- > 0;) {
      const std::size_t position = rest % to[axis];
      rest /= to[axis];
      if (const std::size_t lead = to.size() - from.size(); axis >= lead) {
        const std::size_t extent = from[axis - lead];
        at += stride * (extent == 1 ? 0 : position);
        stride *= extent;
      }
    }
    index[i] = at;
  }
  return index;
}
/// The common shape; empty optional if there is none.
inline std::optional<Extents> common_shape(const Extents& a, const Extents& b) {
  Extents shape(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const int x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return {};
    shape[shape.size() - 1 - i] = x == 1 ? y : x;
  }
  return shape;
}

// The definitions of the ops
// ------------------------------------------------------------------------------------------------------

inline Array broadcast(const Array& a, const Extents& shape) {
  Array result(a.type, shape);
  const auto index = stretched(a.shape, shape);
  for (std::size_t i = 0; i < index.size(); ++i) result.take(i, a, index[i]);
  return result;
}

inline Array cast(const Array& a, ElementType to) {
  Array result(to, a.shape);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (is_real(to)) {
      const ElementType by = to == ElementType::f64 ? to : ElementType::f32;
      result.real[i] = is_real(a.type) ? rounded(a.real[i], to) : rounded(rounded(a.as_real(i), by), to);
    } else if (!is_real(a.type)) {
      result.whole[i] = wrapped(a.whole[i], to);
    } else if (const Real x = a.real[i]; to == ElementType::pred) {
      result.whole[i] = x != 0;
    } else if (std::isnan(x)) {
      result.whole[i] = 0;
    } else if (x >= Real(highest_number(to))) {
      result.whole[i] = highest_of(to);
    } else {
      result.whole[i] = x <= Real(lowest_number(to)) ? lowest_of(to) : held(x);
    }
  }
  return result;
}

inline Real binary(Op op, Real x, Real y) {
  const bool none = std::isnan(x) || std::isnan(y);
  switch (op) {
    case Op::add:
      return x + y;
    case Op::sub:
      return x - y;
    case Op::mul:
      return x * y;
    case Op::div:
      return x / y;
    case Op::minimum:
      return std::isnan(x) ? y : std::isnan(y) ? x : std::min(x, y);
    case Op::maximum:
      return std::isnan(x) ? y : std::isnan(y) ? x : std::max(x, y);
    case Op::minimum_nan:
      return none ? real_nan : std::min(x, y);
    case Op::maximum_nan:
      return none ? real_nan : std::max(x, y);
    default:
      return numbers::real_function(op, x, y);
  }
}
template <class N>
bool compare(Op op, N x, N y) {
  switch (op) {
    case Op::less:
      return x < y;
    case Op::less_equal:
      return x <= y;
    case Op::greater:
      return x > y;
    case Op::greater_equal:
      return x >= y;
    case Op::equal:
      return x == y;
    case Op::not_equal:
      return x != y;
    default:
      throw std::logic_error("the oracle lacks " + std::string(name(op)));
  }
}
/// Real results are exact, not rounded to f32.
inline Array unary(Op op, const Array& a) {
  Array result(result_type(op, a.type), a.shape);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (is_real(result.type))
      result.real[i] = unary(op, a.real[i]);
    else if (is_real(a.type))
      result.whole[i] = numbers::holds(op, a.real[i]);
    else
      result.whole[i] = wrapped(unary(op, a.type, a.whole[i]), a.type);
  }
  return result;
}
inline Array binary(Op op, const Array& a, const Array& b) {
  if (op == Op::cdiv && lowest_number(a.type) == 0)
    return binary(Op::add, binary(Op::floor_div, a, b),
                  cast(cast(binary(Op::modulo, a, b), ElementType::pred), a.type));
  if (op == Op::cdiv) return unary(Op::neg, binary(Op::floor_div, unary(Op::neg, a), b));
  const Extents shape = common_shape(a.shape, b.shape).value();
  Array result(result_type(op, a.type), shape);
  const auto left = stretched(a.shape, shape), right = stretched(b.shape, shape);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::size_t l = left[i], r = right[i];
    if (op == Op::random_uniform)
      result.real[i] = (Real(random_word(a.whole[l], b.whole[r])) + 0.5L) / 0x1p32L;
    else if (result.type == ElementType::pred && a.type != ElementType::pred)
      result.whole[i] = is_real(a.type) ? compare(op, a.real[l], b.real[r])
                                        : compare(op, number_in(a.type, a.whole[l]), number_in(a.type, b.whole[r]));
    else if (is_real(a.type))
      result.real[i] = binary(op, a.real[l], b.real[r]);
    else
      result.whole[i] = wrapped(binary(op, a.type, a.whole[l], b.whole[r]), result.type);
  }
  return result;
}
inline Real ternary(Op op, Real x, Real y, Real z) {
  switch (op) {
    case Op::fma:
      return x * y + z;
    case Op::clamp:
      return binary(Op::minimum, binary(Op::maximum, x, y), z);
    default:
      throw std::logic_error("the oracle lacks real " + std::string(name(op)));
  }
}
inline Array ternary(Op op, const Array& a, const Array& b, const Array& c) {
  const Extents shape = common_shape(common_shape(a.shape, b.shape).value(), c.shape).value();
  Array result(result_type(op, a.type), shape);
  const auto x = stretched(a.shape, shape), y = stretched(b.shape, shape), z = stretched(c.shape, shape);
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (is_real(a.type))
      result.real[i] = ternary(op, a.real[x[i]], b.real[y[i]], c.real[z[i]]);
    else
      result.whole[i] = wrapped(ternary(op, number_in(a.type, a.whole[x[i]]), number_in(a.type, b.whole[y[i]]),
                                        number_in(a.type, c.whole[z[i]])),
                                result.type);
  }
  return result;
}
inline Array select(const Array& condition, const Array& a, const Array& b) {
  const Extents shape = common_shape(condition.shape, common_shape(a.shape, b.shape).value()).value();
  Array result(a.type, shape);
  const auto c = stretched(condition.shape, shape), x = stretched(a.shape, shape), y = stretched(b.shape, shape);
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (condition.whole[c[i]])
      result.take(i, a, x[i]);
    else
      result.take(i, b, y[i]);
  }
  return result;
}

inline Array reshape(Array a, Extents shape) {
  a.shape = std::move(shape);
  return a;
}
inline Array permute(const Array& a, const std::vector<int>& axes) {
  std::vector<std::size_t> stride(a.shape.size());
  for (std::size_t axis = a.shape.size(), step = 1; axis-- > 0; step *= a.shape[axis]) stride[axis] = step;
  Extents shape;
  for (int axis : axes) shape.push_back(a.shape[axis]);
  Array result(a.type, shape);
  for (std::size_t i = 0; i < result.size(); ++i) {
    std::size_t rest = i, at = 0;
    for (std::size_t axis = shape.size(); axis-- > 0; rest /= shape[axis])
      at += rest % shape[axis] * stride[axes[axis]];
    result.take(i, a, at);
  }
  return result;
}
inline Array iota(const Extents& shape, int axis) {
  std::size_t inner = 1;
  for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  return filled(ElementType::i32, shape, [&](std::size_t i) { return static_cast<double>(i / inner % shape[axis]); });
}
inline Array concat(const std::vector<Array>& parts, int axis) {
  Extents shape = parts[0].shape;
  for (std::size_t i = 1; i < parts.size(); ++i) shape[axis] += parts[i].shape[axis];
  Array result(parts[0].type, shape);
  std::size_t inner = 1, outer = 1, at = 0;
  for (int i = 0; i < axis; ++i) outer *= shape[i];
  for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  for (std::size_t o = 0; o < outer; ++o) {
    for (const Array& part : parts) {
      const std::size_t run = inner * part.shape[axis];
      for (std::size_t i = 0; i < run; ++i) result.take(at++, part, o * run + i);
    }
  }
  return result;
}

/// Calls line(first, step, out) for each line along the axis: its elements are first + i * step, and `out` is that of a
/// result whose axis has extent 1.
template <class F>
void each_line(const Extents& shape, int axis, const F& line) {
  std::size_t inner = 1;
  for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  const std::size_t lines = static_cast<std::size_t>(size_of(shape)) / shape[axis];
  for (std::size_t l = 0; l < lines; ++l) line(l / inner * inner * shape[axis] + l % inner, inner, l);
}
inline Extents without(Extents shape, int axis) {
  shape[axis] = 1;
  return shape;
}

/// Half the value of the last digit of 1 in arithmetic of a type.
inline Real unit_of(ElementType type) { return type == ElementType::f64 ? 0x1p-53L : 0x1p-24L; }

/// A reduction; sums of reals are exact enough, and `bound`, if given, is set to the possible error of an f32 sum in
/// any order.
inline Array reduce(Op op, const Array& a, int axis, std::vector<Real>* bound = nullptr) {
  const Real unit = unit_of(a.type);
  Array result(a.type, without(a.shape, axis));
  if (bound) bound->assign(result.size(), 0);
  const int n = a.shape[axis];
  each_line(a.shape, axis, [&](std::size_t first, std::size_t step, std::size_t out) {
    if (is_real(a.type)) {
      const bool least = op == Op::min || op == Op::min_nan;
      Real total = op == Op::sum ? 0 : op == Op::prod ? 1 : least ? real_inf : -real_inf, size = 0;
      for (int i = 0; i < n; ++i) {
        const Real x = a.real[first + i * step];
        size += std::abs(x);
        const Op combine = op == Op::sum       ? Op::add
                           : op == Op::prod    ? Op::mul
                           : op == Op::max     ? Op::maximum
                           : op == Op::min     ? Op::minimum
                           : op == Op::max_nan ? Op::maximum_nan
                                               : Op::minimum_nan;
        total = binary(combine, total, x);
      }
      result.real[out] = total;
      if (bound && op == Op::sum) (*bound)[out] = (n + 1) * size * unit;
      if (bound && op == Op::prod) (*bound)[out] = (n + 1) * std::abs(total) * unit;
    } else {
      const Op combine = op == Op::sum    ? Op::add
                         : op == Op::prod ? Op::mul
                         : op == Op::any  ? Op::logical_or
                         : op == Op::all  ? Op::logical_and
                         : op == Op::max  ? Op::maximum
                                          : Op::minimum;
      i64 total = a.whole[first];
      for (int i = 1; i < n; ++i) total = wrapped(binary(combine, a.type, total, a.whole[first + i * step]), a.type);
      result.whole[out] = total;
    }
  });
  return result;
}
inline Array argmax(const Array& a, int axis) {
  Array result(ElementType::i32, without(a.shape, axis));
  each_line(a.shape, axis, [&](std::size_t first, std::size_t step, std::size_t out) {
    int best = -1;
    for (int i = 0; i < a.shape[axis]; ++i) {
      const std::size_t x = first + i * step, y = first + std::max(best, 0) * step;
      if (is_real(a.type) ? !std::isnan(a.real[x]) && (best < 0 || a.real[x] > a.real[y])
                          : best < 0 || number_in(a.type, a.whole[x]) > number_in(a.type, a.whole[y]))
        best = i;
    }
    result.whole[out] = std::max(best, 0);
  });
  return result;
}
/// A scan; `bound` as for a reduction.
inline Array scan(Op op, const Array& a, int axis, ScanOptions options = {}, std::vector<Real>* bound = nullptr) {
  Array result(a.type, a.shape);
  if (bound) bound->assign(a.size(), 0);
  const Op combine = op == Op::cumsum    ? Op::add
                     : op == Op::cumprod ? Op::mul
                     : op == Op::cummax  ? Op::maximum
                                         : Op::minimum;
  const Cell none = identity(reduction_of(op), a.type);
  const Real unit = unit_of(a.type);
  each_line(a.shape, axis, [&](std::size_t first, std::size_t step, std::size_t) {
    const int n = a.shape[axis];
    Real total = a.type == ElementType::f64 ? Real(none.f64) : Real(none.f32), size = 0;
    i64 count = is_real(a.type) ? 0 : encode(a.type, none);
    for (int i = 0; i < n; ++i) {
      const std::size_t at = first + (options.reverse ? n - 1 - i : i) * step;
      if (is_real(a.type)) {
        const Real before = total;
        total = binary(combine, total, a.real[at]);
        size += std::abs(a.real[at]);
        result.real[at] = options.exclusive ? before : total;
        if (bound && op == Op::cumsum) (*bound)[at] = (i + 1) * size * unit;
        if (bound && op == Op::cumprod) (*bound)[at] = (i + 1) * std::abs(result.real[at]) * unit;
      } else {
        const i64 before = count;
        count = wrapped(binary(combine, a.type, count, a.whole[at]), a.type);
        result.whole[at] = options.exclusive ? before : count;
      }
    }
  });
  return result;
}
inline Array cumsum(const Array& a, int axis, std::vector<Real>* bound = nullptr) {
  return scan(Op::cumsum, a, axis, {}, bound);
}
/// The indices of the first `count` elements of each sorted line; ties by index, NaN the largest.
inline Array argsort(const Array& a, int axis, int count, bool descending) {
  Extents shape = a.shape;
  shape[axis] = count;
  Array result(ElementType::i32, shape);
  each_line(a.shape, axis, [&](std::size_t first, std::size_t step, std::size_t out) {
    std::vector<int> order(a.shape[axis]);
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    const auto is_less = [&](int i, int j) {
      const std::size_t x = first + i * step, y = first + j * step;
      if (!is_real(a.type)) return number_in(a.type, a.whole[x]) < number_in(a.type, a.whole[y]);
      if (std::isnan(a.real[x]) || std::isnan(a.real[y])) return !std::isnan(a.real[x]);
      return a.real[x] < a.real[y];
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](int i, int j) { return descending ? is_less(j, i) : is_less(i, j); });
    const std::size_t begin = out / step * step * count + out % step;
    for (int i = 0; i < count; ++i) result.whole[begin + i * step] = order[i];
  });
  return result;
}
/// The elements at those indices.
inline Array taken(const Array& a, const Array& places, int axis) {
  Array result(a.type, places.shape);
  each_line(a.shape, axis, [&](std::size_t first, std::size_t step, std::size_t out) {
    const std::size_t count = places.shape[axis], begin = out / step * step * count + out % step;
    for (std::size_t i = 0; i < count; ++i)
      result.take(begin + i * step, a, first + places.whole[begin + i * step] * step);
  });
  return result;
}
inline Array histogram(const Array& a, int axis, int bins) {
  Extents shape = a.shape;
  shape[axis] = bins;
  Array result(ElementType::i32, shape);
  each_line(a.shape, axis, [&](std::size_t first, std::size_t step, std::size_t out) {
    for (int i = 0; i < a.shape[axis]; ++i)
      if (const i64 bin = a.whole[first + i * step]; bin >= 0 && bin < bins)
        ++result.whole[out / step * step * bins + out % step + bin * step];
  });
  return result;
}
/// a b + c, and the possible error of f32 products and sums in any order.
inline Array mma(const Array& a, const Array& b, const Array& c, std::vector<Real>& bound) {
  const int m = a.shape[0], k = a.shape[1], n = b.shape[1];
  Array result = c;
  bound.assign(c.size(), 0);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      const std::size_t at = static_cast<std::size_t>(i) * n + j;
      if (!is_real(c.type)) {
        Wide total = c.whole[at];
        for (int l = 0; l < k; ++l)
          total += Wide(a.whole[static_cast<std::size_t>(i) * k + l]) * b.whole[static_cast<std::size_t>(l) * n + j];
        result.whole[at] = wrapped(total, c.type);
        continue;
      }
      Real total = 0, size = std::abs(c.real[at]);
      for (int l = 0; l < k; ++l) {
        const Real matmul = a.real[static_cast<std::size_t>(i) * k + l] * b.real[static_cast<std::size_t>(l) * n + j];
        total += matmul;
        size += std::abs(matmul);
      }
      result.real[at] += total;
      bound[at] = (k + 2) * size * unit_of(c.type);
    }
  }
  return result;
}

// Comparing
// --------------------------------------------------------------------------------------------------------------

/// Empty if every element of `actual` is as expected, else the first that is not. Reals may differ by `tolerance`
/// relative to max(|exact|, smallest normal), by a smallest subnormal unless the tolerance is 0, or by their `bound`.
/// Zeros are equal.
inline std::string difference(const Array& actual, const Array& expected, double tolerance = 0,
                              const std::vector<Real>& bound = {}) {
  std::ostringstream text;
  text.precision(12);
  if (actual.type != expected.type || actual.shape != expected.shape) {
    text << name(actual.type) << text_of(actual.shape) << " instead of " << name(expected.type)
         << text_of(expected.shape);
    return text.str();
  }
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    bool same;
    if (!is_real(expected.type)) {
      same = actual.whole[i] == expected.whole[i];
    } else {
      const Real x = actual.real[i], y = expected.real[i], near = rounded(y, expected.type);
      Real allowed = 0;
      const bool wide = expected.type == ElementType::f64;
      const Real least = wide ? 0x1p-1074L : 0x1p-149L, normal = wide ? 0x1p-1022L : 0x1p-126L;
      const Real scale = wide ? 0x1p-29L : 1;  // the tolerances are those of f32
      if (tolerance > 0) allowed = std::max<Real>(least, scale * tolerance * std::max<Real>(std::abs(y), normal));
      if (!bound.empty()) allowed = std::max(allowed, bound[i]);
      same = std::isnan(y) ? std::isnan(x) : x == near || std::abs(x - y) <= allowed;
    }
    if (same) continue;
    if (++wrong <= 3) {
      text << (wrong > 1 ? "; " : "") << "[" << i << "] is ";
      if (is_real(expected.type))
        text << actual.real[i] << ", not " << expected.real[i];
      else
        text << actual.whole[i] << ", not " << expected.whole[i];
    }
  }
  if (wrong > 3) text << "; " << wrong << " of " << expected.size() << " in all";
  return text.str();
}

// Memory
// -----------------------------------------------------------------------------------------------------------------

/// Element i of memory of a stored type.
inline void read_element(Array& to, std::size_t i, const void* from, ElementType type) {
  const Real x = read_number(from, type);
  if (is_real(type))
    to.real[i] = x;
  else
    to.whole[i] = held(x);
}
inline void write_element(void* to, const Array& from, std::size_t i) {
  if (is_real(from.type)) {
    const std::uint64_t bits = bits_of(rounded(from.real[i], from.type), from.type);
    std::memcpy(to, &bits, info(from.type).bytes);
  } else {
    std::memcpy(to, &from.whole[i], info(from.type).bytes);  // little endian
  }
}

/// A kernel parameter and its memory; strides in elements, `origin` is the offset of element [0, 0, ...].
struct Memory {
  Access access;
  ElementType type;
  std::vector<std::int64_t> extents, strides;
  std::int64_t origin = 0;
  std::vector<std::byte> bytes;
  Cell scalar{};

  void* at(std::int64_t element) { return bytes.data() + element * info(type).bytes; }
  const void* at(std::int64_t element) const { return bytes.data() + element * info(type).bytes; }
};

/// Dense memory, filled with poison if it is for results.
inline Memory dense(Access access, ElementType type, const Extents& shape) {
  Memory memory{access, type, {shape.begin(), shape.end()}, {}, 0, {}, {}};
  memory.strides.resize(shape.size());
  std::int64_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) memory.strides[axis] = stride;
  memory.bytes.assign(static_cast<std::size_t>(stride) * info(type).bytes, std::byte{0xA5});
  return memory;
}
inline Memory input(const Array& values) {
  Memory memory = dense(Access::in, values.type, values.shape);
  for (std::size_t i = 0; i < values.size(); ++i) write_element(memory.at(static_cast<std::int64_t>(i)), values, i);
  return memory;
}
inline Array values_of(const Memory& memory) {
  Array values(memory.type, {memory.extents.begin(), memory.extents.end()});
  for (std::size_t i = 0; i < values.size(); ++i)
    read_element(values, i, memory.at(static_cast<std::int64_t>(i)), memory.type);
  return values;
}
inline Memory scalar_input(i32 value) {
  Memory memory{Access::scalar, ElementType::i32, {}, {}, 0, {}, {}};
  memory.scalar.i32 = value;
  return memory;
}

// Kernels built at run time
// ---------------------------------------------------------------------------------------

inline Location here() { return Location::current(); }

/// A tile in a kernel being traced.
struct Value {
  Handle handle;
  ElementType type;
};
using Values = std::vector<Value>;

inline Shape shape_of(const Extents& extents) { return Shape(std::span<const int>(extents)); }
inline Value apply(Op op, ElementType type, const Values& in, const std::vector<std::int64_t>& attributes = {},
                   const Extents& shape = {}) {
  std::vector<Handle> handles;
  for (const Value& value : in) handles.push_back(value.handle);
  return {Trace::current(here()).apply(op, type, handles, attributes, here(), shape_of(shape)), type};
}
inline Value apply_unary(Op op, const Value& a) { return apply(op, result_type(op, a.type), {a}); }
inline Value apply_binary(Op op, const Value& a, const Value& b) { return apply(op, result_type(op, a.type), {a, b}); }
inline Value apply_ternary(Op op, const Value& a, const Value& b, const Value& c) {
  return apply(op, result_type(op, a.type), {a, b, c});
}
inline Value apply_cast(const Value& a, ElementType to) { return apply(Op::cast, to, {a}); }
inline Value apply_reshape(const Value& a, const Extents& shape) { return apply(Op::reshape, a.type, {a}, {}, shape); }
inline Value literal(ElementType type, Number value, const Extents& shape = {}) {
  return {Trace::current(here()).literal(type, value, here(), shape_of(shape)), type};
}

/// Trace a kernel with these parameters and run it once on the test's device. Returns its text.
inline std::string run(std::vector<Memory>& memory, const std::function<void(const Values& parameters)>& body) {
  std::vector<Parameter> parameters;
  for (const Memory& m : memory) parameters.push_back({m.access, m.type, static_cast<int>(m.extents.size())});
  Trace trace("test", parameters, here());
  Values values;
  std::vector<Argument> arguments;
  const Device& device = test_device();
  std::vector<std::shared_ptr<void>> copies(memory.size());  // the device's replacement of memory, all its bytes
  for (std::size_t i = 0; i < memory.size(); ++i) {
    Memory& m = memory[i];
    Argument argument;
    argument.scalar = m.scalar;
    if (m.access != Access::scalar) {
      argument.data = m.at(m.origin);
      if (!device.shares_host_memory()) {
        copies[i] = device.allocate(m.bytes.size());
        device.copy_in(copies[i].get(), m.bytes.data(), m.bytes.size());
        argument.data = static_cast<std::byte*>(copies[i].get()) + m.origin * info(m.type).bytes;
      }
    }
    std::copy(m.extents.begin(), m.extents.end(), argument.extent.begin());
    std::copy(m.strides.begin(), m.strides.end(), argument.stride.begin());
    arguments.push_back(argument);
    const Op op = m.access == Access::scalar ? Op::scalar : Op::tensor;
    values.push_back(apply(op, m.type, {}, {static_cast<std::int64_t>(i)}));
  }
  body(values);
  const Executable executable(trace.finish());
  executable.launch(device.stream(), arguments);
  for (std::size_t i = 0; i < memory.size(); ++i)
    if (copies[i]) device.copy_out(memory[i].bytes.data(), copies[i].get(), memory[i].bytes.size());
  return to_string(executable.traced());
}

/// A whole parameter as a tile.
inline Value load_all(const Value& view, const Extents& shape) {
  Values in{view};
  for (std::size_t i = 0; i < shape.size(); ++i) in.push_back(literal(ElementType::i32, 0));
  return apply(Op::load, view.type, in, {0}, shape);
}
inline void store_all(const Value& view, const Value& tile, std::size_t rank) {
  Values in{tile, view};
  for (std::size_t i = 0; i < rank; ++i) in.push_back(literal(ElementType::i32, 0));
  apply(Op::store, tile.type, in);
}

/// The body on the inputs, each a whole tile, of any type and rank; its results have the types and shapes of `like`.
inline std::vector<Array> evaluate(const std::vector<Array>& inputs, const std::vector<Array>& like,
                                   const std::function<Values(const Values& tiles)>& body,
                                   std::string* text = nullptr) {
  const auto held = [](ElementType type) {  // the stored type for types that exist only in tiles
    return type == ElementType::tf32 ? ElementType::f32 : type == ElementType::pred ? ElementType::i32 : type;
  };
  const auto with_rank = [](const Extents& shape) { return shape.empty() ? Extents{1} : shape; };
  std::vector<Memory> memory;
  for (const Array& a : inputs) {
    Array stored = a;
    stored.type = held(a.type), stored.shape = with_rank(a.shape);
    memory.push_back(input(stored));
  }
  for (const Array& a : like) memory.push_back(dense(Access::out, held(a.type), with_rank(a.shape)));
  const std::string graph = run(memory, [&](const Values& parameters) {
    Values tiles;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Value tile = load_all(parameters[i], with_rank(inputs[i].shape));
      if (inputs[i].shape.empty()) tile = apply_reshape(tile, {});
      if (inputs[i].type != tile.type) tile = apply_cast(tile, inputs[i].type);
      tiles.push_back(tile);
    }
    const Values results = body(tiles);
    for (std::size_t i = 0; i < like.size(); ++i) {
      Value tile = results[i];
      if (tile.type != held(tile.type)) tile = apply_cast(tile, held(tile.type));
      if (like[i].shape.empty()) tile = apply_reshape(tile, {1});
      store_all(parameters[inputs.size() + i], tile, with_rank(like[i].shape).size());
    }
  });
  if (text) *text = graph;
  std::vector<Array> results;
  for (std::size_t i = 0; i < like.size(); ++i) {
    Array result = values_of(memory[inputs.size() + i]);
    result.type = like[i].type, result.shape = like[i].shape;
    results.push_back(result);
  }
  return results;
}
inline Array evaluate(const std::vector<Array>& inputs, const Array& like,
                      const std::function<Value(const Values& tiles)>& body) {
  return evaluate(inputs, std::vector{like}, [&](const Values& tiles) { return Values{body(tiles)}; })[0];
}

}  // namespace oracle
