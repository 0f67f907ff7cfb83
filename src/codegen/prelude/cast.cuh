// To f32; integers round to nearest even.
template <class T>
__device__ inline float cast_f32(T x) {
  return static_cast<float>(x);
}

// To f64.
template <class T>
__device__ inline double cast_f64(T x) {
  return static_cast<double>(x);
}

// To f16 by way of f32, rounded to nearest even, as the float it stands for.
template <class T>
__device__ inline float cast_f16(T x) {
  return f16_value(f16_bits(to_be_narrowed(x)));
}

// To bf16 by way of f32, rounded to nearest even, as the float it stands for.
template <class T>
__device__ inline float cast_bf16(T x) {
  return bf16_value(bf16_bits(to_be_narrowed(x)));
}

// To tf32 by way of f32, rounded to nearest even, as the float it stands for.
template <class T>
__device__ inline float cast_tf32(T x) {
  return round_to_tf32(to_be_narrowed(x));
}

// To f8e4m3 by way of f32, rounded to nearest even and saturated, as the float it stands for.
template <class T>
__device__ inline float cast_f8e4m3(T x) {
  return f8e4m3_value(f8e4m3_bits(to_be_narrowed(x)));
}

// To f8e5m2 by way of f32, rounded to nearest even and saturated, as the float it stands for.
template <class T>
__device__ inline float cast_f8e5m2(T x) {
  return f8e5m2_value(f8e5m2_bits(to_be_narrowed(x)));
}

// Integers to i32: they wrap.
template <class T>
__device__ inline int cast_i32(T x) {
  return static_cast<int>(x);
}

// Integers to i64.
template <class T>
__device__ inline i64 cast_i64(T x) {
  return static_cast<i64>(x);
}

// Integers to i8: their low bits, which reals do not have.
template <class T>
__device__ inline int cast_i8(T x) {
  return static_cast<i8>(x & 0xff);
}

// Reals to i8: truncated, saturated, 0 of NaN.
__device__ inline int cast_i8(float x) { return minimum(maximum(cast_i32(x), -128), 127); }

// Of f64 likewise.
__device__ inline int cast_i8(double x) { return minimum(maximum(cast_i32(x), -128), 127); }

// Integers to i16: their low bits, which reals do not have.
template <class T>
__device__ inline int cast_i16(T x) {
  return static_cast<i16>(x & 0xffff);
}

// Reals to i16: truncated, saturated, 0 of NaN.
__device__ inline int cast_i16(float x) { return minimum(maximum(cast_i32(x), -32768), 32767); }

// Of f64 likewise.
__device__ inline int cast_i16(double x) { return minimum(maximum(cast_i32(x), -32768), 32767); }

// Integers to u8: their low bits, which reals do not have.
template <class T>
__device__ inline int cast_u8(T x) {
  return static_cast<u8>(x & 0xff);
}

// Reals to u8: truncated, saturated, 0 of NaN.
__device__ inline int cast_u8(float x) { return minimum(maximum(cast_i32(x), 0), 255); }

// Of f64 likewise.
__device__ inline int cast_u8(double x) { return minimum(maximum(cast_i32(x), 0), 255); }

// Integers to u16: their low bits, which reals do not have.
template <class T>
__device__ inline int cast_u16(T x) {
  return static_cast<u16>(x & 0xffff);
}

// Reals to u16: truncated, saturated, 0 of NaN.
__device__ inline int cast_u16(float x) { return minimum(maximum(cast_i32(x), 0), 65535); }

// Of f64 likewise.
__device__ inline int cast_u16(double x) { return minimum(maximum(cast_i32(x), 0), 65535); }

// Integers to u32: they wrap.
template <class T>
__device__ inline u32 cast_u32(T x) {
  return static_cast<u32>(x);
}

// Integers to u64: they wrap.
template <class T>
__device__ inline u64 cast_u64(T x) {
  return static_cast<u64>(x);
}

// To a truth value: anything but zero is true.
template <class T>
__device__ inline bool cast_pred(T x) {
  return x != T(0);
}
