// f8e4m3 as stored in memory; computed in f32.
struct f8e4m3 {
  u8 bits;
};

// f8e5m2 as stored in memory; computed in f32.
struct f8e5m2 {
  u8 bits;
};

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

// Converts to f8e4m3 through f32, rounding to nearest even and saturating; returns the value as a float.
template <class T>
__device__ inline float cast_f8e4m3(T x) {
  return f8e4m3_value(f8e4m3_bits(to_be_narrowed(x)));
}

// Converts to f8e5m2 through f32, rounding to nearest even and saturating; returns the value as a float.
template <class T>
__device__ inline float cast_f8e5m2(T x) {
  return f8e5m2_value(f8e5m2_bits(to_be_narrowed(x)));
}

// f8e4m3 is computed in f32.
__device__ inline float from_memory(f8e4m3 x) { return f8e4m3_value(x.bits); }

// f8e5m2 is computed in f32.
__device__ inline float from_memory(f8e5m2 x) { return f8e5m2_value(x.bits); }

// To f8e4m3, rounding to nearest even and saturating.
template <>
__device__ inline f8e4m3 to_memory<f8e4m3>(float x) {
  return {static_cast<u8>(f8e4m3_bits(x))};
}

// To f8e5m2, rounding to nearest even and saturating.
template <>
__device__ inline f8e5m2 to_memory<f8e5m2>(float x) {
  return {static_cast<u8>(f8e5m2_bits(x))};
}
