// Ops along an axis and ops that move elements: operands, and expected results.
#pragma once
#include <algorithm>
#include <vector>

#include "support/oracle.hpp"

namespace structural_ops {

using namespace tessera::internal;
using oracle::all_types;
using oracle::Array;
using oracle::Extents;
using oracle::Real;
using oracle::Value;
using oracle::Values;

inline Array ordinary(oracle::Rng& rng, ElementType type, const Extents& shape) {
  if (type == ElementType::pred) return oracle::random_array(rng, type, shape, 0, 1);
  if (!oracle::is_real(type)) return oracle::random_bits_array(rng, type, shape);
  return oracle::random_array(rng, type, shape, -100, 100);
}

inline Value along(Op op, const Value& a, int axis) {
  const std::vector<std::int64_t> attributes =
      is_scan(op) ? std::vector<std::int64_t>{axis, 0} : std::vector<std::int64_t>{axis};
  return oracle::apply(op, op == Op::argmax ? ElementType::i32 : a.type, {a}, attributes);
}

inline Value permuted(const Value& a, const std::vector<int>& axes) {
  return oracle::apply(Op::permute, a.type, {a}, {axes.begin(), axes.end()});
}

inline Value stretched(const Value& a, const Extents& shape) {
  return oracle::apply(Op::broadcast, a.type, {a}, {}, shape);
}

inline Array expected_along(Op op, const Array& a, int axis, std::vector<Real>* bound) {
  if (op == Op::argmax) return oracle::argmax(a, axis);
  if (is_scan(op)) return oracle::scan(op, a, axis, {}, bound);
  return oracle::reduce(op, a, axis, bound);
}

inline constexpr Op all_along[] = {Op::sum, Op::prod,   Op::max,    Op::min,     Op::max_nan, Op::min_nan, Op::any,
                                   Op::all, Op::argmax, Op::cumsum, Op::cumprod, Op::cummax,  Op::cummin};

inline bool takes(Op op, ElementType type) { return is_reduction(op) ? accepts(op, type) : info(type).computes; }

inline std::vector<int> random_axes(oracle::Rng& rng, std::size_t rank) {
  std::vector<int> axes(rank);
  for (std::size_t i = 0; i < rank; ++i) axes[i] = static_cast<int>(i);
  std::shuffle(axes.begin(), axes.end(), rng);
  return axes;
}

}  // namespace structural_ops
