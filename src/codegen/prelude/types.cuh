// An unsigned byte, and the element type u8.
using u8 = unsigned char;

// The element type i8.
using i8 = signed char;

// The element type i16.
using i16 = short;

// 16 bits, and the element type u16.
using u16 = unsigned short;

// 32 bits, and the element type u32.
using u32 = unsigned;

// 64 bits, signed: offsets, and the element type i64.
using i64 = long long;

// 64 bits, and the element type u64.
using u64 = unsigned long long;

// An f8e4m3 as it lies in memory; computed with as a float.
struct f8e4m3 {
  u8 bits;
};

// An f8e5m2 as it lies in memory; computed with as a float.
struct f8e5m2 {
  u8 bits;
};

// An IEEE binary16 as it lies in memory; computed with as a float.
struct f16 {
  u16 bits;
};

// The upper half of a float as it lies in memory; computed with as a float.
struct bf16 {
  u16 bits;
};

// What elements of 64 bits are compared by together with their places.
struct PlacedKey {
  u64 key;
  u32 place;
};
