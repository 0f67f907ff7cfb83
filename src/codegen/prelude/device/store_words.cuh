// Stores four words to a tensor with one 16-byte access if `inside`; `to` is aligned to 16 bytes. The store is
// predicated, as behind a branch the compiler stores the words one by one, whatever it knows of the address.
__device__ inline void store_words(void* to, const u32* words, bool inside) {
  const unsigned long at = __cvta_generic_to_global(to);
  const u32 taken = inside;
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %5, 0; @p st.global.v4.b32 [%4], {%0, %1, %2, %3}; }" ::"r"(words[0]),
               "r"(words[1]), "r"(words[2]), "r"(words[3]), "l"(at), "r"(taken)
               : "memory");
}
