__device__ inline void fail_check(u32* board, int text, i64 block) { emulated_fail_check(board, text, block); }

__device__ inline u32* new_record(u32* board, int text, i64 block, u32 words) {
  return emulated_new_record(board, text, block, words);
}

template <class T>
__device__ inline void record_elements(u32* to, const T* from, int count) {
  for (int i = 0; i < count; ++i) {
    const T element = from[i];
    emulated_record(to + i * (sizeof(T) / 4), &element, sizeof element);
  }
}
