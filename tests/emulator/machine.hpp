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

void emulated_copy_async(void* to, const void* from, int bytes, bool valid);
void emulated_copy_async_commit();
void emulated_copy_async_wait(int pending);

void emulated_contended_write(void* to, const void* from, unsigned long bytes);
void emulated_atomic_add_f32(float* to, float value);
void emulated_atomic_add_i32(int* to, int value);
void emulated_atomic_add_i64(long long* to, long long value);

void emulated_fail(const char* what, int line);

/// Text compiled with checks calls this before each access to memory. `from` is the access's address in the code.
void emulated_access(const void* address, unsigned long bytes, unsigned long alignment, bool write, const void* from);
}
