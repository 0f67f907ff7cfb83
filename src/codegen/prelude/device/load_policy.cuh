// Loads 1, 2, 4, 8 or 16 bytes of a tensor that the kernel only reads into words, which keep their values if not
// `inside`. ptxas hoists other loads, at times more than there are registers for, or above the wait for the launch that
// writes the data. These loads stay in program order.
template <int Bytes>
__device__ inline void load_no_hoist(u32* words, const void* from, bool inside) {
  static_assert(Bytes == 1 || Bytes == 2 || Bytes == 4 || Bytes == 8 || Bytes == 16);
  const unsigned long at = __cvta_generic_to_global(from);
  const u32 taken = inside;
  if constexpr (Bytes == 16) {
    asm volatile(
        "{ .reg .pred p; setp.ne.u32 p, %5, 0; @p ld.relaxed.cta.global.v4.b32 {%0, %1, %2, %3}, [%4]; }"
        : "+r"(words[0]), "+r"(words[1]), "+r"(words[2]), "+r"(words[3])
        : "l"(at), "r"(taken));
  } else if constexpr (Bytes == 8) {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %3, 0; @p ld.relaxed.cta.global.v2.b32 {%0, %1}, [%2]; }"
                 : "+r"(words[0]), "+r"(words[1])
                 : "l"(at), "r"(taken));
  } else if constexpr (Bytes == 4) {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.relaxed.cta.global.b32 %0, [%1]; }"
                 : "+r"(words[0])
                 : "l"(at), "r"(taken));
  } else if constexpr (Bytes == 2) {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.relaxed.cta.global.u16 %0, [%1]; }"
                 : "+r"(words[0])
                 : "l"(at), "r"(taken));
  } else {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.relaxed.cta.global.u8 %0, [%1]; }"
                 : "+r"(words[0])
                 : "l"(at), "r"(taken));
  }
}

// L2 cache policy for reading a tensor of `bytes`. A tensor that does not fit in the cache is kept longer than written
// data, which then leaves the cache sooner and in order.
__device__ inline u64 priority_of_read(i64 bytes) {
  u64 longer, usual;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(longer));
  asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(usual));
  return bytes >= 32ll << 20 ? longer : usual;
}

// Like load_no_hoist for 16 bytes, with an L2 cache policy.
__device__ inline void load_evict_last(u32* words, const void* from, bool inside, u64 priority) {
  const unsigned long at = __cvta_generic_to_global(from);
  const u32 taken = inside;
  asm volatile(
      "{ .reg .pred p; setp.ne.u32 p, %5, 0; "
      "@p ld.relaxed.cta.global.L2::cache_hint.v4.b32 {%0, %1, %2, %3}, [%4], %6; }"
      : "+r"(words[0]), "+r"(words[1]), "+r"(words[2]), "+r"(words[3])
      : "l"(at), "r"(taken), "l"(priority));
}
