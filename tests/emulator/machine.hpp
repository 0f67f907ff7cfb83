// The interface between emulated device functions and the emulator: the emulated text includes this and little else,
// and the emulator defines it. Each function finds the calling line of the text by its return address.
#pragma once

extern "C" {
int emulated_thread_index();
long long emulated_block_index();
long long emulated_grid_size();
char* emulated_shared_memory();
void emulated_barrier();
void emulated_warp_barrier();

/// Returns the value that lane `source` passes to the op `what`.
unsigned long long emulated_shuffle(const char* what, unsigned long long value, int source);

/// Writes one register of `out` for each of the `matrices` (2 or 4), which are 8x8 of 16-bit elements.
void emulated_load_matrix(unsigned* out, const void* row, int matrices, bool transposed);
enum EmulatedOperand {
  emulated_f16,
  emulated_bf16,
  emulated_tf32,
  emulated_f8e4m3,
  emulated_f8e5m2,
  emulated_i8,
  emulated_u8
};
/// For f16, bf16 and tf32.
void emulated_mma(EmulatedOperand type, float* c, const unsigned* a, const unsigned* b);
void emulated_mma_bytes(bool is_signed, unsigned* c, const unsigned* a, const unsigned* b);

void emulated_copy_async(void* to, const void* from, int bytes, bool valid);
void emulated_copy_async_commit();
void emulated_copy_async_wait(int pending);

// Clusters.
int emulated_cluster_rank();
int emulated_cluster_size();
void emulated_cluster_barrier();
/// Reads the shared memory of CTA `rank` of the cluster at the address that corresponds to `at`.
void emulated_load_from_block(void* out, const void* at, int bytes, int rank);

/// Arrives at the mbarrier at this offset in each CTA of the cluster.
void emulated_barrier_arrive_cluster(void* at);
/// Copies the box to this offset of shared memory in each CTA of the cluster, where the mbarrier at the same offset as
/// `barrier` counts the bytes.
void emulated_box_load_multicast(const void* map, void* to, void* barrier, const int* at, int axes);

// Stream-K.
void emulated_set_flag(void* flag);
void emulated_wait_flag(void* flag);

// The grid barrier of a persistent kernel.
void emulated_grid_arrive(void* arrivals);
void emulated_grid_leave(void* arrivals, unsigned expected);
void emulated_grid_wait(void* arrivals, unsigned expected);

// Warp groups.
void emulated_barrier_init(void* at, int arrivals);
void emulated_barrier_init_fence();
void emulated_griddep_wait();
void emulated_barrier_arrive(void* at, int expected_bytes);
void emulated_barrier_wait(void* at, unsigned parity);
void emulated_named_barrier(int id, int threads, bool waits);
void emulated_give_registers(int registers);
void emulated_take_registers(int registers);

void emulated_box_load(const void* map, void* to, void* barrier, const int* at, int axes);
void emulated_box_store(const void* map, const void* from, const int* at, int axes);
void emulated_box_store_commit();
void emulated_box_store_wait(int pending);
void emulated_proxy_fence();

/// d[64,n] = or += a[64,16] b[16,n], with a and b given by their descriptors. For tf32 k is 8, for types of 8 bits 32,
/// and both are K-major. d has an int for each sum of i8 or u8, else a float.
void emulated_wgmma(EmulatedOperand type, int n, bool transposed_a, bool transposed_b, void* d, unsigned long long a,
                    unsigned long long b, bool adds);
/// The same with a in registers, 32 bits of k each.
void emulated_wgmma_left(EmulatedOperand type, int n, bool transposed_b, void* d, const unsigned* a,
                         unsigned long long b, bool adds);
void emulated_wgmma_fence();
void emulated_wgmma_commit();
void emulated_wgmma_wait(int pending);

/// Stores four 8x8 matrices of 16-bit elements, one from each register.
void emulated_store_matrix(void* row, const unsigned* registers, bool transposed);

void emulated_contended_write(void* to, const void* from, unsigned long bytes);
enum EmulatedAtomic {
  emulated_load,
  emulated_add,
  emulated_max,
  emulated_min,
  emulated_and,
  emulated_or,
  emulated_xor,
  emulated_exchange,
  emulated_compare_exchange
};
enum EmulatedWord {
  emulated_float,
  emulated_double,
  emulated_int,
  emulated_unsigned,
  emulated_long,
  emulated_unsigned_long
};
/// Scopes: 0 the CTA, 1 the device, 2 the system. `old` receives the previous value.
void emulated_atomic(EmulatedAtomic op, EmulatedWord type, int scope, void* to, const void* x, const void* expected,
                     void* old);
void emulated_fence(int scope);

// Host reports: the mailbox, which is accessed only by these functions.
void emulated_fail_check(unsigned* board, int text, long long block);
unsigned* emulated_new_record(unsigned* board, int text, long long block, unsigned words);
void emulated_record(unsigned* to, const void* from, unsigned long bytes);

// The profiler's logs, which are accessed only by these functions. The clock ticks at each stamp.
void emulated_stamp(unsigned long long* row, unsigned room, unsigned* at, unsigned number);
void emulated_stamp_place(unsigned long long* row, unsigned room, unsigned* at, unsigned number, unsigned tile);

void emulated_fail(const char* what, int line);

/// Text compiled with checks calls this before each memory access. `from` is the address of the access in the code.
void emulated_access(const void* address, unsigned long bytes, unsigned long alignment, bool write, const void* from);
}
