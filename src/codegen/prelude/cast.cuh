// Converts to f32; integers are rounded to nearest even.
template <class T>
__device__ inline float cast_f32(T x) {
  return static_cast<float>(x);
}

// An integer of 22 bits and a sign to f32: in the low bits of 1.5 * 2^23, which is subtracted.
__device__ inline float small_to_real(int x) { return float_of(static_cast<u32>(x + 0x4b400000)) - 12582912.0f; }

// Converts to f64.
template <class T>
__device__ inline double cast_f64(T x) {
  return static_cast<double>(x);
}

// Converts to f16 through f32, rounding to nearest even; returns the value as a float.
template <class T>
__device__ inline float cast_f16(T x) {
  return f16_value(f16_bits(to_be_narrowed(x)));
}

// Converts to bf16 through f32, rounding to nearest even; returns the value as a float.
template <class T>
__device__ inline float cast_bf16(T x) {
  return bf16_value(bf16_bits(to_be_narrowed(x)));
}

// Converts to tf32 through f32, rounding to nearest even; returns the value as a float.
template <class T>
__device__ inline float cast_tf32(T x) {
  return round_to_tf32(to_be_narrowed(x));
}

// Integers to i32; wraps.
template <class T>
__device__ inline int cast_i32(T x) {
  return static_cast<int>(x);
}

// Integers to i64.
template <class T>
__device__ inline i64 cast_i64(T x) {
  return static_cast<i64>(x);
}

// Integers to i8: keeps the low bits. Reals have overloads of their own.
template <class T>
__device__ inline int cast_i8(T x) {
  return static_cast<i8>(x & 0xff);
}

// f32 to i8: truncates and saturates; NaN becomes 0.
__device__ inline int cast_i8(float x) { return minimum(maximum(cast_i32(x), -128), 127); }

// The same for f64.
__device__ inline int cast_i8(double x) { return minimum(maximum(cast_i32(x), -128), 127); }

// Integers to i16: keeps the low bits. Reals have overloads of their own.
template <class T>
__device__ inline int cast_i16(T x) {
  return static_cast<i16>(x & 0xffff);
}

// f32 to i16: truncates and saturates; NaN becomes 0.
__device__ inline int cast_i16(float x) { return minimum(maximum(cast_i32(x), -32768), 32767); }

// The same for f64.
__device__ inline int cast_i16(double x) { return minimum(maximum(cast_i32(x), -32768), 32767); }

// Integers to u8: keeps the low bits. Reals have overloads of their own.
template <class T>
__device__ inline int cast_u8(T x) {
  return static_cast<u8>(x & 0xff);
}

// f32 to u8: truncates and saturates; NaN becomes 0.
__device__ inline int cast_u8(float x) { return minimum(maximum(cast_i32(x), 0), 255); }

// The same for f64.
__device__ inline int cast_u8(double x) { return minimum(maximum(cast_i32(x), 0), 255); }

// Integers to u16: keeps the low bits. Reals have overloads of their own.
template <class T>
__device__ inline int cast_u16(T x) {
  return static_cast<u16>(x & 0xffff);
}

// f32 to u16: truncates and saturates; NaN becomes 0.
__device__ inline int cast_u16(float x) { return minimum(maximum(cast_i32(x), 0), 65535); }

// The same for f64.
__device__ inline int cast_u16(double x) { return minimum(maximum(cast_i32(x), 0), 65535); }

// Integers to u32; wraps.
template <class T>
__device__ inline u32 cast_u32(T x) {
  return static_cast<u32>(x);
}

// Integers to u64; wraps.
template <class T>
__device__ inline u64 cast_u64(T x) {
  return static_cast<u64>(x);
}

// Converts to bool: true unless x is zero.
template <class T>
__device__ inline bool cast_pred(T x) {
  return x != T(0);
}
