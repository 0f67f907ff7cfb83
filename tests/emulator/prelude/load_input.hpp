template <int Bytes>
__device__ inline void load_input(u32* words, const void* from, bool inside) {
  static_assert(Bytes == 1 || Bytes == 2 || Bytes == 4 || Bytes == 8 || Bytes == 16);
  struct alignas(Bytes) Memory {
    unsigned char bytes[Bytes];
  };
  for (int i = 0; i < (Bytes + 3) / 4; ++i) words[i] = 0;
  if (!inside) return;
  const Memory memory = *static_cast<const Memory*>(from);
  __builtin_memcpy(words, &memory, Bytes);
}

template <int Bytes>
__device__ inline void load_input_over(u32* words, const void* from, bool inside) {
  static_assert(Bytes == 1 || Bytes == 2 || Bytes == 4 || Bytes == 8 || Bytes == 16);
  struct alignas(Bytes) Memory {
    unsigned char bytes[Bytes];
  };
  if (!inside) return;
  const Memory memory = *static_cast<const Memory*>(from);
  __builtin_memcpy(words, &memory, Bytes);
}
