__device__ inline void stamp(u64* row, u32 room, bool writer, u32& at, u32 number) {
  if (writer) emulated_stamp(row, room, &at, number);
}

__device__ inline void stamp_place(u64* row, u32 room, bool writer, u32& at, u32 number, u32 tile) {
  if (writer) emulated_stamp_place(row, room, &at, number, tile);
}
