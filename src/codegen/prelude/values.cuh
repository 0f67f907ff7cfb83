// +infinity.
__device__ inline float infinity() { return float_of(0x7f800000u); }

// +infinity in f64.
__device__ inline double double_infinity() { return double_of(0x7ff0000000000000ll); }

// A quiet NaN in f64.
__device__ inline double double_nan_value() { return double_of(0x7ff8000000000000ll); }

// A quiet NaN.
__device__ inline float nan_value() { return float_of(0x7fc00000u); }

// Converts the bits of a bf16 to float.
__device__ inline float bf16_value(u16 bits) { return float_of(static_cast<u32>(bits) << 16); }

// Converts the bits of an f8e4m3 to float.
__device__ inline float f8e4m3_value(int bits) {
  const u32 size = static_cast<u32>(bits) & 0x7fu;
  const float number = float_of(size << 20) * 1.329227995784916e36f;  // 2^120
  const float value = size == 0x7fu ? nan_value() : number;
  return bits & 0x80 ? -value : value;
}

// Converts the bits of an f8e5m2 to float; they are the upper half of an f16.
__device__ inline float f8e5m2_value(int bits) {
  return f16_value(static_cast<u16>((static_cast<u32>(bits) & 0xffu) << 8));
}

// Converts a non-negative float, at most the largest value of an 8-bit type, to the bits of that type, rounding to
// nearest even: `fraction` fraction bits; 2^lowest is the smallest normal number.
template <int fraction, int lowest>
__device__ inline u32 bits_of_size(float size) {
  constexpr int cut = 23 - fraction;
  constexpr u32 exponent = static_cast<u32>(127 + lowest);  // f32 exponent of the smallest normal number
  const u32 bits = bits_of(size);
  const u32 nearest = (bits + ((1u << (cut - 1)) - 1u) + ((bits >> cut) & 1u)) >> cut;
  const float step = float_of((exponent + cut) << 23);  // adding it moves the bits of a subnormal to the end
  const u32 subnormal = bits_of(size + step) - bits_of(step);
  return bits < exponent << 23 ? subnormal : nearest - ((exponent - 1u) << fraction);
}

// Converts a float to f8e4m3, saturating at 448; every NaN becomes 0x7f.
__device__ inline int f8e4m3_bits(float x) {
  if (x != x) return 0x7f;
  const u32 sign = bits_of(x) >> 24 & 0x80u;
  const float size = fabsf(x);
  return static_cast<int>(sign | bits_of_size<3, -6>(size < 448.0f ? size : 448.0f));
}

// Converts a float to f8e5m2, saturating at 57344 except for infinities; every NaN becomes 0x7f.
__device__ inline int f8e5m2_bits(float x) {
  if (x != x) return 0x7f;
  const u32 sign = bits_of(x) >> 24 & 0x80u;
  const float size = fabsf(x);
  const u32 number = bits_of_size<2, -14>(size < 57344.0f ? size : 57344.0f);
  return static_cast<int>(sign | (size == infinity() ? 0x7cu : number));
}

// Converts a number to f32 before it is narrowed further.
template <class T>
__device__ inline float to_be_narrowed(T x) {
  return static_cast<float>(x);
}

// Converts f64 to f32, rounding to odd where it is inexact, so that narrowing does not round twice (Boldo and
// Melquiond, 2008).
__device__ inline float to_be_narrowed(double x) {
  const float nearest = static_cast<float>(x);
  const double back = nearest;
  if (back == x || x != x) return nearest;
  return float_of((bits_of(nearest) - (fabs(back) > fabs(x) ? 1u : 0u)) | 1u);
}

// Converts a float to tf32, which has 10 fraction bits, rounding to nearest even; every NaN becomes 0x7fffe000.
__device__ inline u32 tf32_bits(float x) {
  const u32 bits = bits_of(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffe000u;
  return (bits + 0xfffu + ((bits >> 13) & 1u)) & 0xffffe000u;
}
