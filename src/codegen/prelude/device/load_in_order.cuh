// 1, 2, 4, 8 or 16 bytes of a tensor that the kernel only reads, as words; zeros, reading nothing, where not `inside`.
// Others ptxas brings forward, at times more than there are registers; these it keeps in their order.
template <int Bytes>
__device__ inline void load_in_order(u32* words, const void* from, bool inside) {
  static_assert(Bytes == 1 || Bytes == 2 || Bytes == 4 || Bytes == 8 || Bytes == 16);
  const unsigned long at = __cvta_generic_to_global(from);
  const u32 taken = inside;
  if constexpr (Bytes == 16) {
    asm("{ .reg .pred p; setp.ne.u32 p, %5, 0; mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; mov.b32 %3, 0; "
        "@p ld.relaxed.cta.global.v4.b32 {%0, %1, %2, %3}, [%4]; }"
        : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
        : "l"(at), "r"(taken));
  } else if constexpr (Bytes == 8) {
    asm("{ .reg .pred p; setp.ne.u32 p, %3, 0; mov.b32 %0, 0; mov.b32 %1, 0; "
        "@p ld.relaxed.cta.global.v2.b32 {%0, %1}, [%2]; }"
        : "=r"(words[0]), "=r"(words[1])
        : "l"(at), "r"(taken));
  } else if constexpr (Bytes == 4) {
    asm("{ .reg .pred p; setp.ne.u32 p, %2, 0; mov.b32 %0, 0; @p ld.relaxed.cta.global.b32 %0, [%1]; }"
        : "=r"(words[0])
        : "l"(at), "r"(taken));
  } else if constexpr (Bytes == 2) {
    asm("{ .reg .pred p; setp.ne.u32 p, %2, 0; mov.b32 %0, 0; @p ld.relaxed.cta.global.u16 %0, [%1]; }"
        : "=r"(words[0])
        : "l"(at), "r"(taken));
  } else {
    asm("{ .reg .pred p; setp.ne.u32 p, %2, 0; mov.b32 %0, 0; @p ld.relaxed.cta.global.u8 %0, [%1]; }"
        : "=r"(words[0])
        : "l"(at), "r"(taken));
  }
}
