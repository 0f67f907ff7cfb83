// Logs this thread's clock and a number, behind its earlier stamps, in a row of `room` words. Only a writer writes: a
// branch around clock and store cost 1.5 % of a matmul, and predicates 11 %.
__device__ inline void stamp(u64* row, u32 room, bool writer, u32& at, u32 number) {
  if (!writer || at >= room) return;
  u32 now;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(now)::"memory");
  asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(row + at), "r"(now), "r"(number) : "memory");
  ++at;
}

// The same with the GPU's time, the multiprocessor and a grid tile, in two more words.
__device__ inline void stamp_place(u64* row, u32 room, bool writer, u32& at, u32 number, u32 tile) {
  if (!writer || at + 3 > room) return;
  u64 time;
  u32 multiprocessor;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time)::"memory");
  asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
  row[at + 1] = time;
  row[at + 2] = static_cast<u64>(tile) << 32 | multiprocessor;
  stamp(row, room, true, at, number);
  at += 2;
}
