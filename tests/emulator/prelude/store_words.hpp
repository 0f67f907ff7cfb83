__device__ inline void store_words(void* to, const u32* words, bool inside) {
  struct alignas(16) Memory {
    u32 words[4];
  };
  if (inside) *static_cast<Memory*>(to) = {{words[0], words[1], words[2], words[3]}};
}
