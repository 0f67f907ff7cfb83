__device__ inline u32 bits_of(float x) { return __builtin_bit_cast(u32, x); }

__device__ inline float float_of(u32 bits) { return __builtin_bit_cast(float, bits); }

__device__ inline u64 bits_of(double x) { return __builtin_bit_cast(u64, x); }

__device__ inline double double_of(i64 bits) { return __builtin_bit_cast(double, bits); }

__device__ inline u16 f16_bits(float x) { return emulated::f16_bits(x); }

__device__ inline float f16_value(u16 bits) { return static_cast<float>(__builtin_bit_cast(_Float16, bits)); }

__device__ inline u16 bf16_bits(float x) { return emulated::bf16_bits(x); }

__device__ inline float round_to_tf32(float x) { return float_of(tf32_bits(x)); }

__device__ inline u32 pack_f16(float low, float high) {
  return emulated::f16_bits(low) | static_cast<u32>(emulated::f16_bits(high)) << 16;
}

__device__ inline u32 pack_bf16(float low, float high) {
  return emulated::bf16_bits(low) | static_cast<u32>(emulated::bf16_bits(high)) << 16;
}

__device__ inline u32 select_bytes(u32 first, u32 second, u32 selector) {
  const u64 both = first | static_cast<u64>(second) << 32;
  u32 bytes = 0;
  for (int i = 0; i < 4; ++i) bytes |= static_cast<u32>(both >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
  return bytes;
}

__device__ inline int cast_i32(float x) {
  if (x != x) return 0;
  return x >= 0x1p31f ? 0x7fffffff : x < -0x1p31f ? -0x7fffffff - 1 : static_cast<int>(x);
}

__device__ inline i64 cast_i64(float x) {
  if (x != x) return 0;
  constexpr i64 highest = 0x7fffffffffffffff;
  return x >= 0x1p63f ? highest : x < -0x1p63f ? -highest - 1 : static_cast<i64>(x);
}

__device__ inline u32 cast_u32(float x) { return !(x > 0) ? 0 : x >= 0x1p32f ? 0xffffffffu : static_cast<u32>(x); }

__device__ inline u64 cast_u64(float x) {
  return !(x > 0) ? 0 : x >= 0x1p64f ? ~static_cast<u64>(0) : static_cast<u64>(x);
}

template <class T>
__device__ inline T count_ones(T x) {
  return __builtin_popcountll(sizeof(T) == 8 ? static_cast<u64>(x) : static_cast<u32>(x));
}

template <class T>
__device__ inline T leading_zeros(T x) {
  if (x == 0) return 8 * sizeof(T);
  return __builtin_clzll(sizeof(T) == 8 ? static_cast<u64>(x) : static_cast<u32>(x)) - (64 - 8 * sizeof(T));
}

__device__ inline int cast_i32(double x) {
  if (x != x) return 0;
  return x >= 0x1p31 ? 0x7fffffff : x <= -0x1p31 ? -0x7fffffff - 1 : static_cast<int>(x);
}

__device__ inline i64 cast_i64(double x) {
  if (x != x) return 0;
  constexpr i64 highest = 0x7fffffffffffffff;
  return x >= 0x1p63 ? highest : x < -0x1p63 ? -highest - 1 : static_cast<i64>(x);
}

__device__ inline u32 cast_u32(double x) { return !(x > 0) ? 0 : x >= 0x1p32 ? 0xffffffffu : static_cast<u32>(x); }

__device__ inline u64 cast_u64(double x) {
  return !(x > 0) ? 0 : x >= 0x1p64 ? ~static_cast<u64>(0) : static_cast<u64>(x);
}
