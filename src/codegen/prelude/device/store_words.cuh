// Four words into a tensor by one access of 16 bytes, if `inside`; `to` is a multiple of that. Behind a branch the
// compiler stores them one by one, whatever it knows of the place.
__device__ inline void store_words(void* to, const u32* words, bool inside) {
  const unsigned long at = __cvta_generic_to_global(to);
  const u32 taken = inside;
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %5, 0; @p st.global.v4.b32 [%4], {%0, %1, %2, %3}; }" ::"r"(words[0]),
               "r"(words[1]), "r"(words[2]), "r"(words[3]), "l"(at), "r"(taken)
               : "memory");
}
