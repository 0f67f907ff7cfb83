// Loads 1, 2, 4, 8 or 16 bytes of a tensor that the kernel only reads into words; zeros, without reading, if not
// `inside`. The load itself is predicated, because a branch around each load costs compile time and code size. `setp`
// comes first because a word may share the register of `taken`.
template <int Bytes>
__device__ inline void load_input(u32* words, const void* from, bool inside) {
  static_assert(Bytes == 1 || Bytes == 2 || Bytes == 4 || Bytes == 8 || Bytes == 16);
  const unsigned long at = __cvta_generic_to_global(from);
  const u32 taken = inside;
  if constexpr (Bytes == 16) {
    asm("{ .reg .pred p; setp.ne.u32 p, %5, 0; mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; mov.b32 %3, 0; "
        "@p ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4]; }"
        : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
        : "l"(at), "r"(taken));
  } else if constexpr (Bytes == 8) {
    asm("{ .reg .pred p; setp.ne.u32 p, %3, 0; mov.b32 %0, 0; mov.b32 %1, 0; @p ld.global.nc.v2.b32 {%0, %1}, [%2]; }"
        : "=r"(words[0]), "=r"(words[1])
        : "l"(at), "r"(taken));
  } else if constexpr (Bytes == 4) {
    asm("{ .reg .pred p; setp.ne.u32 p, %2, 0; mov.b32 %0, 0; @p ld.global.nc.b32 %0, [%1]; }"
        : "=r"(words[0])
        : "l"(at), "r"(taken));
  } else if constexpr (Bytes == 2) {
    asm("{ .reg .pred p; setp.ne.u32 p, %2, 0; mov.b32 %0, 0; @p ld.global.nc.u16 %0, [%1]; }"
        : "=r"(words[0])
        : "l"(at), "r"(taken));
  } else {
    asm("{ .reg .pred p; setp.ne.u32 p, %2, 0; mov.b32 %0, 0; @p ld.global.nc.u8 %0, [%1]; }"
        : "=r"(words[0])
        : "l"(at), "r"(taken));
  }
}

// The same, except that the words keep their values if not `inside`.
template <int Bytes>
__device__ inline void load_input_over(u32* words, const void* from, bool inside) {
  static_assert(Bytes == 1 || Bytes == 2 || Bytes == 4 || Bytes == 8 || Bytes == 16);
  const unsigned long at = __cvta_generic_to_global(from);
  const u32 taken = inside;
  if constexpr (Bytes == 16) {
    asm("{ .reg .pred p; setp.ne.u32 p, %5, 0; @p ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4]; }"
        : "+r"(words[0]), "+r"(words[1]), "+r"(words[2]), "+r"(words[3])
        : "l"(at), "r"(taken));
  } else if constexpr (Bytes == 8) {
    asm("{ .reg .pred p; setp.ne.u32 p, %3, 0; @p ld.global.nc.v2.b32 {%0, %1}, [%2]; }"
        : "+r"(words[0]), "+r"(words[1])
        : "l"(at), "r"(taken));
  } else if constexpr (Bytes == 4) {
    asm("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.nc.b32 %0, [%1]; }" : "+r"(words[0]) : "l"(at), "r"(taken));
  } else if constexpr (Bytes == 2) {
    asm("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.nc.u16 %0, [%1]; }" : "+r"(words[0]) : "l"(at), "r"(taken));
  } else {
    asm("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.nc.u8 %0, [%1]; }" : "+r"(words[0]) : "l"(at), "r"(taken));
  }
}
