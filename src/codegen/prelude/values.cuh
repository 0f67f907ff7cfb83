// +infinity.
__device__ inline float infinity() { return float_of(0x7f800000u); }

// +infinity of f64.
__device__ inline double double_infinity() { return double_of(0x7ff0000000000000ll); }

// A quiet NaN of f64.
__device__ inline double double_nan_value() { return double_of(0x7ff8000000000000ll); }

// A quiet NaN.
__device__ inline float nan_value() { return float_of(0x7fc00000u); }

// The float that the bits of a bf16 stand for.
__device__ inline float bf16_value(u16 bits) { return float_of(static_cast<u32>(bits) << 16); }

// The float that the bits of an f8e4m3 stand for.
__device__ inline float f8e4m3_value(int bits) {
  const u32 size = static_cast<u32>(bits) & 0x7fu;
  const float number = float_of(size << 20) * 1.329227995784916e36f;  // 2^120
  const float value = size == 0x7fu ? nan_value() : number;
  return bits & 0x80 ? -value : value;
}

// The float that the bits of an f8e5m2 stand for: those of the upper half of an f16.
__device__ inline float f8e5m2_value(int bits) {
  return f16_value(static_cast<u16>((static_cast<u32>(bits) & 0xffu) << 8));
}

// The bits of a size that is not above the largest of a type of 8 bits, rounded to nearest even: `fraction` bits of
// fraction, 2^lowest being the smallest normal number.
template <int fraction, int lowest>
__device__ inline u32 bits_of_size(float size) {
  constexpr int cut = 23 - fraction;
  constexpr u32 exponent = static_cast<u32>(127 + lowest);  // of the smallest normal number, as a float has it
  const u32 bits = bits_of(size);
  const u32 nearest = (bits + ((1u << (cut - 1)) - 1u) + ((bits >> cut) & 1u)) >> cut;
  const float step = float_of((exponent + cut) << 23);  // adding it leaves the digits of a subnormal as its last
  const u32 subnormal = bits_of(size + step) - bits_of(step);
  return bits < exponent << 23 ? subnormal : nearest - ((exponent - 1u) << fraction);
}

// A float rounded to f8e4m3, at most 448; every NaN is 0x7f.
__device__ inline int f8e4m3_bits(float x) {
  if (x != x) return 0x7f;
  const u32 sign = bits_of(x) >> 24 & 0x80u;
  const float size = fabsf(x);
  return static_cast<int>(sign | bits_of_size<3, -6>(size < 448.0f ? size : 448.0f));
}

// A float rounded to f8e5m2, at most 57344, but for infinities; every NaN is 0x7f.
__device__ inline int f8e5m2_bits(float x) {
  if (x != x) return 0x7f;
  const u32 sign = bits_of(x) >> 24 & 0x80u;
  const float size = fabsf(x);
  const u32 number = bits_of_size<2, -14>(size < 57344.0f ? size : 57344.0f);
  return static_cast<int>(sign | (size == infinity() ? 0x7cu : number));
}

// A number on its way to a narrower type than f32.
template <class T>
__device__ inline float to_be_narrowed(T x) {
  return static_cast<float>(x);
}

// Of a double, cut off and made odd where a float does not hold it, so that it is not rounded twice (Boldo and
// Melquiond, 2008).
__device__ inline float to_be_narrowed(double x) {
  const float nearest = static_cast<float>(x);
  const double back = nearest;
  if (back == x || x != x) return nearest;
  return float_of((bits_of(nearest) - (fabs(back) > fabs(x) ? 1u : 0u)) | 1u);
}

// A float rounded to the 10 bits of fraction of tf32, to nearest even; every NaN is 0x7fffe000.
__device__ inline u32 tf32_bits(float x) {
  const u32 bits = bits_of(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffe000u;
  return (bits + 0xfffu + ((bits >> 13) & 1u)) & 0xffffe000u;
}
