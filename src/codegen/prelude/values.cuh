// +infinity.
__device__ inline float infinity() { return float_of(0x7f800000u); }

// A quiet NaN.
__device__ inline float nan_value() { return float_of(0x7fc00000u); }

// The float that the bits of a bf16 stand for.
__device__ inline float bf16_value(u16 bits) { return float_of(static_cast<u32>(bits) << 16); }

// A float rounded to the 10 bits of fraction of tf32, to nearest even; every NaN is 0x7fffe000.
__device__ inline u32 tf32_bits(float x) {
  const u32 bits = bits_of(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffe000u;
  return (bits + 0xfffu + ((bits >> 13) & 1u)) & 0xffffe000u;
}
