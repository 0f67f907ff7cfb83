// A profiler's library that takes NVTX ranges, for tests: it keeps them, and prints those of a program of its own.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

std::string log_text;
int depth = 0;

int push(const char* name) {
  log_text += std::string(static_cast<std::size_t>(2 * depth), ' ') + name + "\n";
  if (std::getenv("NVTX_INJECTION64_PATH")) std::fprintf(stderr, "NVTX: %s\n", name);
  return depth++;
}
int pop() { return --depth; }

struct Callbacks {
  std::size_t bytes;
  int (*table_of_module)(int module, void**** table, unsigned* size);
};

}  // namespace

extern "C" const char* fake_nvtx_log() { return log_text.c_str(); }

extern "C" int InitializeInjectionNvtx2(const void* (*table_of)(std::uint32_t)) {
  const auto* const callbacks = static_cast<const Callbacks*>(table_of(1));
  void*** table = nullptr;
  unsigned size = 0;
  if (!callbacks || callbacks->bytes < sizeof(Callbacks) || !callbacks->table_of_module(1, &table, &size) || size < 12)
    return 0;
  *table[9] = reinterpret_cast<void*>(&push);
  *table[11] = reinterpret_cast<void*>(&pop);
  return 1;
}
