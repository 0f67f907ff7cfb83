// Sums of integers wrap.
__device__ inline int wrap_add(int a, int b) { return static_cast<int>(static_cast<u32>(a) + static_cast<u32>(b)); }

// Sums of 64-bit integers wrap.
__device__ inline i64 wrap_add(i64 a, i64 b) { return static_cast<i64>(static_cast<u64>(a) + static_cast<u64>(b)); }

// Sums of reals and of unsigned integers, for templates over all number types.
template <class T>
__device__ inline T wrap_add(T a, T b) {
  return a + b;
}

// Differences of integers wrap.
__device__ inline int wrap_sub(int a, int b) { return static_cast<int>(static_cast<u32>(a) - static_cast<u32>(b)); }

// Differences of 64-bit integers wrap.
__device__ inline i64 wrap_sub(i64 a, i64 b) { return static_cast<i64>(static_cast<u64>(a) - static_cast<u64>(b)); }

// Those of unsigned integers do.
template <class T>
__device__ inline T wrap_sub(T a, T b) {
  return a - b;
}

// Products of integers wrap.
__device__ inline int wrap_mul(int a, int b) { return static_cast<int>(static_cast<u32>(a) * static_cast<u32>(b)); }

// Products of 64-bit integers wrap.
__device__ inline i64 wrap_mul(i64 a, i64 b) { return static_cast<i64>(static_cast<u64>(a) * static_cast<u64>(b)); }

// Those of unsigned integers do.
template <class T>
__device__ inline T wrap_mul(T a, T b) {
  return a * b;
}

// The lowest integer is its own negative.
template <class T>
__device__ inline T wrap_neg(T a) {
  return wrap_sub(T(0), a);
}

// One of two reals, for templates over all number types.
template <class T>
__device__ inline T select(bool first, T a, T b) {
  return first ? a : b;
}

// The lowest integer is its own absolute value.
template <class T>
__device__ inline T wrap_abs(T a) {
  if constexpr (T(-1) < T(1))
    return select(a < 0, wrap_neg(a), a);
  else
    return a;
}

// a / b rounded down; 0 where b is 0, and the lowest integer divided by -1 wraps. (T(-1) < T(1) where T has a sign.)
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

// a / b rounded up, exact up to the largest a; 0 where b is 0. Negation wraps.
template <class T>
__device__ inline T cdiv(T a, T b) {
  if constexpr (T(-1) < T(1))
    return wrap_neg(floor_div(wrap_neg(a), b));
  else
    return b == 0 ? 0 : a / b + (a % b != 0 ? 1 : 0);
}

// What floor_div leaves, of the sign of b; 0 where b is 0.
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

// The smaller of two integers.
template <class T>
__device__ inline T minimum(T a, T b) {
  return select(a < b, a, b);
}

// The larger of two integers.
template <class T>
__device__ inline T maximum(T a, T b) {
  return select(a > b, a, b);
}

// The smaller, of f64, ignoring NaN.
__device__ inline double minimum(double a, double b) { return fmin(a, b); }

// The smaller, of f64, NaN if either is.
__device__ inline double minimum_nan(double a, double b) { return a < b || a != a ? a : b; }

// The larger, of f64, NaN if either is.
__device__ inline double maximum_nan(double a, double b) { return a > b || a != a ? a : b; }

// a moved to the left by b bits; 0 unless b is in [0, bits of a).
template <class T>
__device__ inline T shift_left(T a, T b) {
  constexpr T bits = 8 * sizeof(T);
  return select((b & (bits - 1)) == b, a << (b & (bits - 1)), T(0));
}

// a moved to the right by b bits, its sign from the left; nothing but the sign unless b is in [0, bits of a).
template <class T>
__device__ inline T shift_right(T a, T b) {
  constexpr T bits = 8 * sizeof(T);
  T sign = 0;
  if constexpr (T(-1) < T(1)) sign = a < 0 ? -1 : 0;
  return select((b & (bits - 1)) == b, a >> (b & (bits - 1)), sign);
}

// -1, 0 or 1.
template <class T>
__device__ inline T sign_of(T a) {
  if constexpr (T(-1) < T(1))
    return select(a > 0, T(1), select(a < 0, static_cast<T>(-1), T(0)));
  else
    return select(a > 0, T(1), T(0));
}

// -1, 0 or 1 of a real; NaN of NaN.
__device__ inline float sign_of(float a) { return a == 0.0f || a != a ? a : copysignf(1.0f, a); }

// Of f64.
__device__ inline double sign_of(double a) { return a == 0.0 || a != a ? a : copysign(1.0, a); }

// Is it NaN?
template <class T>
__device__ inline bool is_nan(T a) {
  return a != a;
}

// Is it an infinity, of either sign?
__device__ inline bool is_infinite(float a) { return fabsf(a) == infinity(); }

// Is it neither NaN nor an infinity?
__device__ inline bool is_finite(float a) { return less(fabsf(a), infinity()); }

// Is it an infinity, of f64?
__device__ inline bool is_infinite(double a) { return fabs(a) == double_infinity(); }

// Is it neither NaN nor an infinity, of f64?
__device__ inline bool is_finite(double a) { return less(fabs(a), double_infinity()); }

// Does an element go before the best so far in argmax? The larger does, among equals the one of lower index. The search
// starts from (the lowest, 0).
template <class T>
__device__ inline bool beats(T value, int index, T best, int best_index) {
  return value > best || (value == best && index < best_index);
}

// Of reals any number goes before NaN, and the search starts from (NaN, 0).
__device__ inline bool beats(float value, int index, float best, int best_index) {
  return less(best, value) || (value == best && index < best_index) || (value == value && best != best);
}

// Of f64.
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

// 1 / (1 + 2^-x), to 5e-7 of itself; 0 where that is subnormal.
__device__ inline float sigmoid2_of(float x) { return reciprocal_approximate(1.0f + exp2_approximate(-x)); }

// The same of f64, exactly.
__device__ inline double sigmoid2_of(double x) { return 1.0 / (1.0 + exp2(-x)); }

// 2^x; 0 where that is subnormal.
__device__ inline float exp2_of(float x) { return exp2_approximate(x); }

// The same of f64, exactly.
__device__ inline double exp2_of(double x) { return exp2(x); }

// tanh x of f64.
__device__ inline double tanh_of(double x) { return tanh(x); }

// tanh x, to 3e-7 of itself: by a polynomial below 0.8, else 1 - 2 / (e^2x + 1). Both are computed, for a branch costs
// more, as does what CUDA's own tanhf needs of registers.
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

// One of two unsigned integers.
__device__ inline u32 select(bool first, u32 a, u32 b) {
  return static_cast<u32>(select(first, static_cast<int>(a), static_cast<int>(b)));
}

// One of two unsigned 64-bit integers.
__device__ inline u64 select(bool first, u64 a, u64 b) {
  return static_cast<u64>(select(first, static_cast<i64>(a), static_cast<i64>(b)));
}
