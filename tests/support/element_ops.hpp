// Elementwise ops: tables of them, operands, and comparisons with expected results.
#pragma once
#include <cfloat>
#include <string>
#include <vector>

#include "support/devices.hpp"
#include "support/oracle.hpp"

namespace element_ops {

using namespace tessera::internal;
using oracle::all_types;
using oracle::Array;
using oracle::Extents;
using oracle::Real;
using oracle::Values;

struct TableOp {
  Op op;
  double low, high, tolerance;
};

inline constexpr TableOp unary_ops[] = {
#define UNARY(name, operands, result, host, real, integer, low, high, tolerance, meaning) \
  {Op::name, low, high, tolerance},
#define BINARY(...)
#define TERNARY(...)
#define REDUCTION(...)
#define STRUCTURAL(...)
#include "tessera/graph/ops.def"
};

inline constexpr TableOp binary_ops[] = {
#define UNARY(...)
#define BINARY(name, operands, result, host, real, integer, low, high, tolerance, meaning) \
  {Op::name, low, high, tolerance},
#define TERNARY(...)
#define REDUCTION(...)
#define STRUCTURAL(...)
#include "tessera/graph/ops.def"
};

inline constexpr TableOp ternary_ops[] = {
#define UNARY(...)
#define BINARY(...)
#define TERNARY(name, operands, result, host, real, integer, low, high, tolerance, meaning) \
  {Op::name, low, high, tolerance},
#define REDUCTION(...)
#define STRUCTURAL(...)
#include "tessera/graph/ops.def"
};

inline double tolerance_of(Op op) {
  for (const auto& t : unary_ops)
    if (t.op == op) return t.tolerance;
  for (const auto& t : binary_ops)
    if (t.op == op) return t.tolerance;
  for (const auto& t : ternary_ops)
    if (t.op == op) return t.tolerance;
  return 0;
}

inline Array on_device(Op op, const Array& a) {
  const Array like(result_type(op, a.type), a.shape);
  return oracle::evaluate({a}, like, [&](const Values& x) { return oracle::apply_unary(op, x[0]); });
}
inline Array on_device(Op op, const Array& a, const Array& b) {
  const Array like(result_type(op, a.type), oracle::common_shape(a.shape, b.shape).value());
  return oracle::evaluate({a, b}, like, [&](const Values& x) { return oracle::apply_binary(op, x[0], x[1]); });
}
inline Array on_device(Op op, const Array& a, const Array& b, const Array& c) {
  const Extents shape = oracle::common_shape(oracle::common_shape(a.shape, b.shape).value(), c.shape).value();
  return oracle::evaluate({a, b, c}, Array(result_type(op, a.type), shape),
                          [&](const Values& x) { return oracle::apply_ternary(op, x[0], x[1], x[2]); });
}
inline std::string difference(Op op, const Array& a, const Array& b, const Array& c) {
  const Array exact = oracle::ternary(op, a, b, c);
  return oracle::difference(on_device(op, a, b, c), exact, tolerance_of(op));
}
inline std::string difference(Op op, const Array& a) {
  const Array exact = oracle::unary(op, a);
  // Results of exp2 and sigmoid2 that are subnormal, possibly after rounding, may be 0.
  std::vector<Real> bound(op == Op::exp2 || op == Op::sigmoid2 || has_absolute_tolerance(op) ? exact.size() : 0);
  for (std::size_t i = 0; i < bound.size(); ++i)
    if (has_absolute_tolerance(op)) {
      const bool wave = op != Op::log2_approx;
      const Real size = std::abs(a.real[i]);
      bound[i] = !wave || size <= 6.28L ? tolerance_of(op) : size <= 314 ? 4e-5L : 2;
    } else if (exact.real[i] < FLT_MIN * (1 + tolerance_of(op)))
      bound[i] = exact.real[i];
  return oracle::difference(on_device(op, a), exact, tolerance_of(op), bound);
}
inline std::string difference(Op op, const Array& a, const Array& b) {
  // How a 32-bit word becomes a number is the implementation's choice, as long as it uses the upper bits.
  const std::vector<Real> bound(
      op == Op::random_uniform ? oracle::size_of(oracle::common_shape(a.shape, b.shape).value()) : 0, 0x1p-23L);
  return oracle::difference(on_device(op, a, b), oracle::binary(op, a, b), tolerance_of(op), bound);
}

inline const std::vector<Real> special_reals = {0.0L,
                                                -0.0L,
                                                1,
                                                -1,
                                                0.5L,
                                                -2,
                                                3,
                                                16777216,
                                                -16777217.0f,
                                                FLT_MAX,
                                                -FLT_MAX,
                                                FLT_MIN,
                                                -FLT_MIN,
                                                FLT_MIN / 2,
                                                0x1p-149L,
                                                -0x1p-149L,
                                                0x1.fffffep-1L,
                                                0x1.000002p0L,
                                                88,
                                                -103,
                                                oracle::real_inf,
                                                -oracle::real_inf,
                                                oracle::real_nan};

inline Array special_array(ElementType type) {
  if (oracle::is_real(type))
    return oracle::cast(oracle::reals({static_cast<int>(special_reals.size())}, special_reals), type);
  std::vector<i64> values;
  for (i64 x = -7; x <= 7; ++x) values.push_back(x);
  for (i64 x = 0; x < 3; ++x) {
    values.push_back(oracle::lowest_of(type) + x);
    values.push_back(oracle::highest_of(type) - x);
    values.push_back(oracle::wrapped(oracle::highest_number(type) / 2 + x, type));
  }
  for (i64& x : values) x = oracle::wrapped(x, type);
  const int size = static_cast<int>(values.size());
  return oracle::wholes(type, {size}, values);
}

inline std::vector<float> launch_on(const auto& k, const std::vector<float>& x) {
  const Device& device = test_device();
  Tensor<f32, 1> in(device, {static_cast<i64>(x.size())}), out(device, {static_cast<i64>(x.size())});
  in.copy_from(x);
  out.copy_from(std::vector<float>(x.size(), NAN));
  launch(device.stream(), k, in, out);
  return out.to_vector();
}

}  // namespace element_ops
