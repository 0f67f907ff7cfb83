// The bits of a float.
__device__ inline u32 bits_of(float x) { return __float_as_uint(x); }

// The float with these bits.
__device__ inline float float_of(u32 bits) { return __uint_as_float(bits); }

// The bits of a double.
__device__ inline u64 bits_of(double x) { return static_cast<u64>(__double_as_longlong(x)); }

// The double with these bits.
__device__ inline double double_of(i64 bits) { return __longlong_as_double(bits); }

// Converts a float to f16, rounding to nearest even.
__device__ inline u16 f16_bits(float x) {
  u16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

// Converts the bits of an f16 to float.
__device__ inline float f16_value(u16 bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}

// Converts a float to bf16, rounding to nearest even.
__device__ inline u16 bf16_bits(float x) {
  u16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

// Converts a float to tf32, rounding to nearest even; every NaN becomes 0x7fffe000.
__device__ inline float round_to_tf32(float x) {
#if __CUDA_ARCH__ >= 900
  u32 bits;
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return float_of(bits);
#else
  return float_of(tf32_bits(x));
#endif
}

// Converts two floats to f16 and packs them into a word.
__device__ inline u32 pack_f16(float low, float high) {
  u32 bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}

// Converts two floats to bf16 and packs them into a word.
__device__ inline u32 pack_bf16(float low, float high) {
  u32 bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}

// Selects four bytes of two words: byte i is the one that digit i of the selector names, 0 to 3 in the first word and 4
// to 7 in the second.
__device__ inline u32 select_bytes(u32 first, u32 second, u32 selector) { return __byte_perm(first, second, selector); }

// f32 to i32: truncates and saturates; NaN becomes 0.
__device__ inline int cast_i32(float x) { return __float2int_rz(x); }

// f32 to i64: truncates and saturates; NaN becomes 0, where the instruction returns the lowest integer.
__device__ inline i64 cast_i64(float x) { return x == x ? __float2ll_rz(x) : 0; }

// f32 to u32: truncates and saturates; NaN becomes 0.
__device__ inline u32 cast_u32(float x) { return __float2uint_rz(x); }

// f32 to u64: truncates and saturates; NaN becomes 0.
__device__ inline u64 cast_u64(float x) { return x > 0.0f ? __float2ull_rz(x) : 0; }

// f64 to i32: truncates and saturates; NaN becomes 0.
__device__ inline int cast_i32(double x) { return x == x ? __double2int_rz(x) : 0; }

// f64 to i64: truncates and saturates; NaN becomes 0.
__device__ inline i64 cast_i64(double x) { return x == x ? __double2ll_rz(x) : 0; }

// f64 to u32: truncates and saturates; NaN becomes 0.
__device__ inline u32 cast_u32(double x) { return x > 0.0 ? __double2uint_rz(x) : 0; }

// f64 to u64: truncates and saturates; NaN becomes 0.
__device__ inline u64 cast_u64(double x) { return x > 0.0 ? __double2ull_rz(x) : 0; }

// Number of bits that are 1.
template <class T>
__device__ inline T count_ones(T x) {
  if constexpr (sizeof(T) == 8)
    return __popcll(static_cast<u64>(x));
  else
    return __popc(static_cast<u32>(x));
}

// Number of leading zero bits; all bits if x is 0.
template <class T>
__device__ inline T leading_zeros(T x) {
  if constexpr (sizeof(T) == 8)
    return __clzll(static_cast<i64>(x));
  else
    return __clz(static_cast<int>(x));
}
