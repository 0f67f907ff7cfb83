__device__ inline u32 shared_address(const void* pointer) {
  return static_cast<u32>(static_cast<const char*>(pointer) - emulated_shared_memory());
}

template <int Bytes>
__device__ inline void copy_async(void* to_shared, const void* from_global, bool valid) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16);
  emulated_copy_async(to_shared, from_global, Bytes, valid);
}

__device__ inline void copy_async_commit() { emulated_copy_async_commit(); }

template <int Pending>
__device__ inline void copy_async_wait() {
  emulated_copy_async_wait(Pending);
}
