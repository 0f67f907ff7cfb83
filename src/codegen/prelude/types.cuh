// An unsigned byte, and the element type u8.
using u8 = unsigned char;

// 16 bits.
using u16 = unsigned short;

// 32 bits.
using u32 = unsigned;

// 64 bits, signed: offsets, and the element type i64.
using i64 = long long;

// 64 bits.
using u64 = unsigned long long;

// An IEEE binary16 as it lies in memory; computed with as a float.
struct f16 {
  u16 bits;
};

// The upper half of a float as it lies in memory; computed with as a float.
struct bf16 {
  u16 bits;
};
