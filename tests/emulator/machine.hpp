// What emulated helpers of the prelude ask of the emulator: the emulated text includes this and little else, and the
// emulator defines it. Every function finds out by its return address which line of the text called it.
#pragma once

extern "C" {
int emulated_thread_index();
long long emulated_block_index();
long long emulated_grid_size();
char* emulated_shared_memory();
void emulated_barrier();
void emulated_warp_barrier();

/// The value that lane `source` brings to the op `what`.
unsigned long long emulated_shuffle(const char* what, unsigned long long value, int source);

/// One register of `out` for each of the `matrices` (2 or 4) of 8x8 elements of 16 bits.
void emulated_load_matrix(unsigned* out, const void* row, int matrices, bool transposed);
enum EmulatedOperand { emulated_f16, emulated_bf16, emulated_tf32 };
void emulated_mma(EmulatedOperand type, float* c, const unsigned* a, const unsigned* b);
void emulated_mma_bytes(bool is_signed, unsigned* c, const unsigned* a, const unsigned* b);

void emulated_copy_async(void* to, const void* from, int bytes, bool valid);
void emulated_copy_async_commit();
void emulated_copy_async_wait(int pending);

// Of clusters.
int emulated_cluster_rank();
int emulated_cluster_size();
void emulated_cluster_barrier();
/// What block `rank` of the cluster has at the place of `at`.
void emulated_load_from_block(void* out, const void* at, int bytes, int rank);

// Of blocks that share tiles.
void emulated_set_flag(void* flag);
void emulated_wait_flag(void* flag);

// Of warp groups.
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

/// d[64,n] = or += a[64,16] b[16,n], a and b by their descriptors; of tf32 8 of k, which their rows run along.
void emulated_wgmma(EmulatedOperand type, int n, bool transposed_a, bool transposed_b, float* d, unsigned long long a,
                    unsigned long long b, bool adds);
/// The same of a in registers, two elements in each or a tf32.
void emulated_wgmma_left(EmulatedOperand type, int n, bool transposed_b, float* d, const unsigned* a,
                         unsigned long long b, bool adds);
void emulated_wgmma_fence();
void emulated_wgmma_commit();
void emulated_wgmma_wait(int pending);

/// Four matrices of 8x8 elements of 16 bits, a register of each.
void emulated_store_matrix(void* row, const unsigned* registers);

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
/// Of a scope: 0 the block, 1 the device, 2 more than it. `old` becomes what was there.
void emulated_atomic(EmulatedAtomic op, EmulatedWord type, int scope, void* to, const void* x, const void* expected,
                     void* old);
void emulated_fence(int scope);

// Of a kernel that tells the host: its board, of which only these know.
void emulated_fail_check(unsigned* board, int text, long long block);
unsigned* emulated_new_record(unsigned* board, int text, long long block, unsigned words);
void emulated_record(unsigned* to, const void* from, unsigned long bytes);

void emulated_fail(const char* what, int line);

/// Text compiled with checks calls this before each access to memory. `from` is the access's address in the code.
void emulated_access(const void* address, unsigned long bytes, unsigned long alignment, bool write, const void* from);
}
