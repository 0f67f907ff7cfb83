template <int Bytes>
__device__ inline void load_no_hoist(u32* words, const void* from, bool inside) {
  static_assert(Bytes == 1 || Bytes == 2 || Bytes == 4 || Bytes == 8 || Bytes == 16);
  struct alignas(Bytes) Memory {
    unsigned char bytes[Bytes];
  };
  if (!inside) return;
  const Memory memory = *static_cast<const Memory*>(from);
  __builtin_memcpy(words, &memory, Bytes);
}

__device__ inline u64 priority_of_read(i64) { return 0; }

__device__ inline void load_evict_last(u32* words, const void* from, bool inside, u64) {
  load_no_hoist<16>(words, from, inside);
}
