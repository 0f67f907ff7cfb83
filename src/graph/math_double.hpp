// f64: the functions of the C++ library, each within 2 ulp of the exact value.
#pragma once
#include <cmath>

namespace tessera::internal::math {

#define REAL_FUNCTION(name) \
  inline double name(double x) { return std::name(x); }
REAL_FUNCTION(exp)
REAL_FUNCTION(expm1)
REAL_FUNCTION(exp2)
REAL_FUNCTION(log)
REAL_FUNCTION(log2)
REAL_FUNCTION(log10)
REAL_FUNCTION(log1p)
REAL_FUNCTION(asin)
REAL_FUNCTION(acos)
REAL_FUNCTION(atan)
REAL_FUNCTION(sinh)
REAL_FUNCTION(cosh)
REAL_FUNCTION(tanh)
REAL_FUNCTION(erf)
REAL_FUNCTION(erfc)
REAL_FUNCTION(cbrt)
REAL_FUNCTION(sqrt)
#undef REAL_FUNCTION
// Near a multiple of pi / 2 that is far from 0, glibc's reduction leaves a double about 48 bits; a long double has
// enough.
#define WAVE(name, few_digits)                                                                            \
  inline double name(double x) {                                                                          \
    const double y = std::name(x), size = std::fabs(y);                                                   \
    return few_digits ? static_cast<double>(std::name(static_cast<long double>(x))) : y;                  \
  }
WAVE(sin, size < 0x1p-30)
WAVE(cos, size < 0x1p-30)
WAVE(tan, size < 0x1p-30 || size > 0x1p30)
#undef WAVE
inline double sigmoid2(double x) { return 1 / (1 + std::exp2(-x)); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline double pow(double x, double y) { return std::pow(x, y); }
inline double atan2(double y, double x) { return std::atan2(y, x); }
inline double fma(double a, double b, double c) { return std::fma(a, b, c); }

}  // namespace tessera::internal::math
