// The functions that -fsanitize=thread calls before accesses to memory: here they reach the emulator's checks.
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

// Of larger objects the hook does not know the alignment: those that vectors of the prelude fill need 16.
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
