__device__ inline u64 priority_of_read(i64) { return 0; }

__device__ inline void load_kept(u32* words, const void* from, bool inside, u64) {
  load_in_order<16>(words, from, inside);
}
