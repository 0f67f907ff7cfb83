template <int Bytes>
__device__ inline void load_in_order(u32* words, const void* from, bool inside) {
  load_input<Bytes>(words, from, inside);
}
