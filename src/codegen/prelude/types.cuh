// Unsigned 8-bit integer; the element type u8.
using u8 = unsigned char;

// Signed 8-bit integer; the element type i8.
using i8 = signed char;

// Signed 16-bit integer; the element type i16.
using i16 = short;

// Unsigned 16-bit integer; the element type u16.
using u16 = unsigned short;

// Unsigned 32-bit integer (a word); the element type u32.
using u32 = unsigned;

// Signed 64-bit integer: offsets, and the element type i64.
using i64 = long long;

// Unsigned 64-bit integer; the element type u64.
using u64 = unsigned long long;

// f16 (IEEE binary16) as stored in memory; computed in f32.
struct f16 {
  u16 bits;
};

// bf16, the upper half of a float, as stored in memory; computed in f32.
struct bf16 {
  u16 bits;
};

// pred as stored in memory, 0 or 1; computed as bool.
struct pred {
  u8 bits;
};

// Sort key of a 64-bit element together with its index.
struct PlacedKey {
  u64 key;
  u32 place;
};
