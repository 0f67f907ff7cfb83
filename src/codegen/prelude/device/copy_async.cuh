// The shared-memory address that `pointer` points to, for instructions that take no generic address.
__device__ inline u32 shared_address(const void* pointer) {
  return static_cast<u32>(__cvta_generic_to_shared(pointer));
}

// Starts a cp.async of 4, 8 or 16 bytes from global to shared memory; if not `valid`, it writes zeros and reads
// nothing.
template <int Bytes>
__device__ inline void copy_async(void* to_shared, const void* from_global, bool valid) {
  const u32 to = shared_address(to_shared);
  const unsigned long from = __cvta_generic_to_global(from_global);
  const int count = valid ? Bytes : 0;
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(count) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(Bytes), "r"(count)
                 : "memory");
  }
}

// Commits a group: the copies that this thread has started since the last commit.
__device__ inline void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most the last `Pending` groups of this thread are incomplete.
template <int Pending>
__device__ inline void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}
