// An angle reduced to [-pi/4, pi/4], and the number of quarter turns removed.
struct Turn {
  float angle;
  u32 quarters;
};

// 96 bits of a number, the most significant in `high`.
struct Bits96 {
  u32 high, middle, low;
};

// 32 bits of a 64-bit number in two words, from bit n below the top on; n < 32.
__device__ inline u32 bits_from(u32 n, u32 high, u32 low) {
  return static_cast<u32>((static_cast<u64>(high) << 32 | low) << n >> 32);
}

// The bits of 2 / pi from position n on, n < 128; position 26 is the first after the binary point (Payne and Hanek,
// 1983).
__device__ inline Bits96 two_over_pi_from(u32 n) {
  const bool far = (n & 64) != 0, further = (n & 32) != 0;
  const u32 a0 = far ? 0x91054a7fu : 0x00000028u, a1 = far ? 0x09d5f47du : 0xbe60db93u,
            a2 = far ? 0x4d377036u : 0x91054a7fu, a3 = far ? 0xd8a5664fu : 0x09d5f47du,
            a4 = far ? 0x10e4107fu : 0x4d377036u;
  const u32 b0 = further ? a1 : a0, b1 = further ? a2 : a1, b2 = further ? a3 : a2, b3 = further ? a4 : a3;
  return {bits_from(n & 31, b0, b1), bits_from(n & 31, b1, b2), bits_from(n & 31, b2, b3)};
}

// Range reduction of x >= 0. From 0.5 on, x 2 / pi modulo 4 is an integer product, exact to 2^-62: two bits are the
// quarter turns; the rest, with a sign, is the angle. For an infinity and NaN the angle is NaN. CUDA's sinf uses a
// local array here.
__device__ inline Turn turn_of(float x) {
  const u32 exponent = bits_of(x) >> 23, mantissa = (bits_of(x) & 0x7fffffu) | 0x800000u;
  const bool above_one = exponent > 126;
  const Bits96 factor = two_over_pi_from(above_one ? exponent - 127 : 0);
  const u32 m = above_one ? mantissa << 1 : mantissa;
  const u64 low = static_cast<u64>(m) * factor.low, middle = static_cast<u64>(m) * factor.middle + (low >> 32);
  const u32 p1 = m * factor.high + static_cast<u32>(middle >> 32), p0 = static_cast<u32>(middle);
  const u32 s1 = bits_from(2, p1, p0), s0 = p0 << 2;
  const float coarse = static_cast<float>(static_cast<int>(s1) >> 8);
  const float fine = static_cast<float>(static_cast<int>((s1 & 255u) << 23 | s0 >> 9));
  const float angle = (coarse + fine * 0x1p-31f) * 0x1.921fb6p-24f;
  const bool small = x < 0.5f;
  return {small ? x : angle + (x - x), small ? 0 : (p1 >> 30) + (p1 >> 29 & 1u)};
}

// The sine of an angle in [-pi/4, pi/4].
__device__ inline float sin_in_turn(float r) {
  const float z = r * r, p = (-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f;
  return p * z * r + r;
}

// The cosine of an angle in [-pi/4, pi/4].
__device__ inline float cos_in_turn(float r) {
  const float z = r * r, p = (2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f;
  return p * z * z - 0.5f * z + 1.0f;
}

// The tangent of an angle in [-pi/4, pi/4].
__device__ inline float tan_in_turn(float r) {
  const float z = r * r;
  float p = (9.38540185543e-3f * z + 3.11992232697e-3f) * z + 2.44301354525e-2f;
  p = ((p * z + 5.34112807005e-2f) * z + 1.33387994085e-1f) * z + 3.33331568548e-1f;
  return p * z * r + r;
}

// x, with its sign flipped if the sign bit of `sign` is set.
__device__ inline float with_sign(float x, u32 sign) { return float_of(bits_of(x) ^ (sign & 0x80000000u)); }

// sin x, to a relative error of 3e-7.
__device__ inline float sin_of(float x) {
  const Turn turn = turn_of(fabsf(x));
  const float s = sin_in_turn(turn.angle), c = cos_in_turn(turn.angle);
  return with_sign((turn.quarters & 1) != 0 ? c : s, bits_of(x) ^ turn.quarters << 30);
}

// cos x, to a relative error of 3e-7.
__device__ inline float cos_of(float x) {
  const Turn turn = turn_of(fabsf(x));
  const float s = sin_in_turn(turn.angle), c = cos_in_turn(turn.angle);
  return with_sign((turn.quarters & 1) != 0 ? s : c, (turn.quarters + 1) << 30);
}

// tan x, to a relative error of 5e-7.
__device__ inline float tan_of(float x) {
  const Turn turn = turn_of(fabsf(x));
  const float t = tan_in_turn(turn.angle);
  return with_sign((turn.quarters & 1) != 0 ? reciprocal_approximate(-t) : t, bits_of(x));
}

// sin x in f64.
__device__ inline double sin_of(double x) { return sin(x); }

// cos x in f64.
__device__ inline double cos_of(double x) { return cos(x); }

// tan x in f64.
__device__ inline double tan_of(double x) { return tan(x); }
