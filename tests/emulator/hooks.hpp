// The functions that -fsanitize=thread calls before memory accesses; here they call the emulator's checks.
#pragma once
#include "machine.hpp"

#define HOOK __attribute__((no_sanitize("thread"), visibility("hidden"))) void
#define HERE __builtin_return_address(0)
#define ACCESS(name, bytes, alignment, write) \
  HOOK __tsan_##name(void* address) { emulated_access(address, bytes, alignment, write, HERE); }
#define ACCESSES(bytes)                          \
  ACCESS(read##bytes, bytes, bytes, false)       \
  ACCESS(write##bytes, bytes, bytes, true)       \
  ACCESS(unaligned_read##bytes, bytes, 1, false) \
  ACCESS(unaligned_write##bytes, bytes, 1, true)

extern "C" {
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

// The hook does not get the alignment of larger objects; the prelude's vectors are 16-byte aligned.
HOOK __tsan_read_range(void* address, unsigned long bytes) {
  emulated_access(address, bytes, bytes % 16 == 0 ? 16 : 1, false, HERE);
}
HOOK __tsan_write_range(void* address, unsigned long bytes) {
  emulated_access(address, bytes, bytes % 16 == 0 ? 16 : 1, true, HERE);
}

HOOK __tsan_init() {}
HOOK __tsan_func_entry(void*) {}
HOOK __tsan_func_exit() {}
}

#undef ACCESSES
#undef ACCESS
#undef HERE
#undef HOOK
