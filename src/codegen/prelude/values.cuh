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

// Sets all elements of registers.
template <class T, int N, class Value>
__device__ inline void fill(T (&out)[N], Value value) {
#pragma unroll
  for (int i = 0; i < N; ++i) out[i] = value;
}

// Copies all elements of registers.
template <class T, int N>
__device__ inline void copy(T (&out)[N], const T (&in)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) out[i] = in[i];
}
