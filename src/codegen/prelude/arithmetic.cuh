// Addition of i32 that wraps on overflow.
__device__ inline int wrap_add(int a, int b) { return static_cast<int>(static_cast<u32>(a) + static_cast<u32>(b)); }

// Addition of i64 that wraps on overflow.
__device__ inline i64 wrap_add(i64 a, i64 b) { return static_cast<i64>(static_cast<u64>(a) + static_cast<u64>(b)); }

// Addition of reals and of unsigned integers, for templates over all number types.
template <class T>
__device__ inline T wrap_add(T a, T b) {
  return a + b;
}

// Subtraction of i32 that wraps on overflow.
__device__ inline int wrap_sub(int a, int b) { return static_cast<int>(static_cast<u32>(a) - static_cast<u32>(b)); }

// Subtraction of i64 that wraps on overflow.
__device__ inline i64 wrap_sub(i64 a, i64 b) { return static_cast<i64>(static_cast<u64>(a) - static_cast<u64>(b)); }

// Subtraction of unsigned integers, which wraps.
template <class T>
__device__ inline T wrap_sub(T a, T b) {
  return a - b;
}

// Multiplication of i32 that wraps on overflow.
__device__ inline int wrap_mul(int a, int b) { return static_cast<int>(static_cast<u32>(a) * static_cast<u32>(b)); }

// Multiplication of i64 that wraps on overflow.
__device__ inline i64 wrap_mul(i64 a, i64 b) { return static_cast<i64>(static_cast<u64>(a) * static_cast<u64>(b)); }

// Multiplication of unsigned integers, which wraps.
template <class T>
__device__ inline T wrap_mul(T a, T b) {
  return a * b;
}

// Negation that wraps: the lowest integer is its own negative.
template <class T>
__device__ inline T wrap_neg(T a) {
  return wrap_sub(T(0), a);
}

// Selects one of two reals, for templates over all number types.
template <class T>
__device__ inline T select(bool first, T a, T b) {
  return first ? a : b;
}

// Absolute value that wraps: the lowest integer is its own.
template <class T>
__device__ inline T wrap_abs(T a) {
  if constexpr (T(-1) < T(1))
    return select(a < 0, wrap_neg(a), a);
  else
    return a;
}

// a / b rounded down; 0 if b is 0. The lowest integer divided by -1 wraps. (T(-1) < T(1) if T is signed.)
template <class T>
__device__ inline T floor_div(T a, T b) {
  if (b == 0) return 0;
  if constexpr (T(-1) < T(1)) {
    if (b == -1) return wrap_neg(a);
    const T quotient = a / b, remainder = a % b;
    return remainder != 0 && (remainder < 0) != (b < 0) ? quotient - 1 : quotient;
  } else {
    return a / b;
  }
}

// a / b rounded up, exact up to the largest a; 0 if b is 0. Negation wraps.
template <class T>
__device__ inline T cdiv(T a, T b) {
  if constexpr (T(-1) < T(1))
    return wrap_neg(floor_div(wrap_neg(a), b));
  else
    return b == 0 ? 0 : a / b + (a % b != 0 ? 1 : 0);
}

// The remainder of floor_div, with the sign of b; 0 if b is 0.
template <class T>
__device__ inline T modulo(T a, T b) {
  if (b == 0) return 0;
  if constexpr (T(-1) < T(1)) {
    if (b == -1) return 0;
    const T remainder = a % b;
    return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
  } else {
    return a % b;
  }
}

// Minimum of two integers.
template <class T>
__device__ inline T minimum(T a, T b) {
  return select(a < b, a, b);
}

// Maximum of two integers.
template <class T>
__device__ inline T maximum(T a, T b) {
  return select(a > b, a, b);
}

// Minimum in f64, ignoring NaN.
__device__ inline double minimum(double a, double b) { return fmin(a, b); }

// Minimum in f64; NaN if either operand is NaN.
__device__ inline double minimum_nan(double a, double b) { return a < b || a != a ? a : b; }

// Maximum in f64; NaN if either operand is NaN.
__device__ inline double maximum_nan(double a, double b) { return a > b || a != a ? a : b; }

// a << b; 0 unless b is in [0, bits of a).
template <class T>
__device__ inline T shift_left(T a, T b) {
  constexpr T bits = 8 * sizeof(T);
  return select((b & (bits - 1)) == b, a << (b & (bits - 1)), T(0));
}

// a >> b, arithmetic if T is signed; only sign bits remain unless b is in [0, bits of a).
template <class T>
__device__ inline T shift_right(T a, T b) {
  constexpr T bits = 8 * sizeof(T);
  T sign = 0;
  if constexpr (T(-1) < T(1)) sign = a < 0 ? -1 : 0;
  return select((b & (bits - 1)) == b, a >> (b & (bits - 1)), sign);
}

// Sign of an integer: -1, 0 or 1.
template <class T>
__device__ inline T sign_of(T a) {
  if constexpr (T(-1) < T(1))
    return select(a > 0, T(1), select(a < 0, static_cast<T>(-1), T(0)));
  else
    return select(a > 0, T(1), T(0));
}

// Sign of a real: -1, 0 or 1; NaN for NaN.
__device__ inline float sign_of(float a) { return a == 0.0f || a != a ? a : copysignf(1.0f, a); }

// The same for f64.
__device__ inline double sign_of(double a) { return a == 0.0 || a != a ? a : copysign(1.0, a); }

// Returns true if a is NaN.
template <class T>
__device__ inline bool is_nan(T a) {
  return a != a;
}

// Returns true if a is an infinity of either sign.
__device__ inline bool is_infinite(float a) { return fabsf(a) == infinity(); }

// Returns true if a is neither NaN nor an infinity.
__device__ inline bool is_finite(float a) { return less(fabsf(a), infinity()); }

// Returns true if a double is an infinity of either sign.
__device__ inline bool is_infinite(double a) { return fabs(a) == double_infinity(); }

// Returns true if a double is neither NaN nor an infinity.
__device__ inline bool is_finite(double a) { return less(fabs(a), double_infinity()); }

// Returns true if an element replaces the best so far in argmax: the larger value wins, and ties go to the lower index.
// The search starts from (the lowest value, 0).
template <class T>
__device__ inline bool beats(T value, int index, T best, int best_index) {
  return value > best || (value == best && index < best_index);
}

// For reals, any number wins over NaN, and the search starts from (NaN, 0).
__device__ inline bool beats(float value, int index, float best, int best_index) {
  return less(best, value) || (value == best && index < best_index) || (value == value && best != best);
}

// The same for f64.
__device__ inline bool beats(double value, int index, double best, int best_index) {
  return less(best, value) || (value == best && index < best_index) || (value == value && best != best);
}

// A step of argmax: keeps the better of an element and the best so far.
template <class T>
__device__ inline void keep_best(T value, int index, T& best, int& best_index) {
  const bool better = beats(value, index, best, best_index);
  best = select(better, value, best);
  best_index = select(better, index, best_index);
}

// 1 / (1 + 2^-x), to a relative error of 5e-7; 0 where the result is subnormal.
__device__ inline float sigmoid2_of(float x) { return reciprocal_approximate(1.0f + exp2_approximate(-x)); }

// The same for f64, in full precision.
__device__ inline double sigmoid2_of(double x) { return 1.0 / (1.0 + exp2(-x)); }

// 2^x; 0 where the result is subnormal.
__device__ inline float exp2_of(float x) { return exp2_approximate(x); }

// The same for f64, in full precision.
__device__ inline double exp2_of(double x) { return exp2(x); }

// tanh x in f64.
__device__ inline double tanh_of(double x) { return tanh(x); }

// tanh x, to a relative error of 3e-7: a polynomial for |x| below 0.8, else 1 - 2 / (e^2|x| + 1) with the sign of x.
// Both are computed because a branch costs more; so do the registers that CUDA's own tanhf needs.
__device__ inline float tanh_of(float x) {
  const float s = x * x, low = fmaf(x * s,
                                    fmaf(fmaf(fmaf(fmaf(fmaf(0.001762877218f, s, -0.007734463084f), s, 0.02152135596f),
                                                   s, -0.05391799286f),
                                              s, 0.1333306283f),
                                         s, -0.3333333135f),
                                    x);
  const float high = fmaf(-2.0f, reciprocal_approximate(exp2_approximate(fabsf(x) * 2.885390082f) + 1.0f), 1.0f);
  return copysignf(fabsf(x) < 0.8f ? low : high, x);
}

// Selects one of two u32.
__device__ inline u32 select(bool first, u32 a, u32 b) {
  return static_cast<u32>(select(first, static_cast<int>(a), static_cast<int>(b)));
}

// Selects one of two u64.
__device__ inline u64 select(bool first, u64 a, u64 b) {
  return static_cast<u64>(select(first, static_cast<i64>(a), static_cast<i64>(b)));
}
