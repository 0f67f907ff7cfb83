#include "jit/profile/nvtx.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdlib>

namespace tessera::internal::profile {
namespace {

// The interface between a program and a profiler's library, from nvtxDetail/nvtxTypes.h and nvtxImpl.h of NVTX 3 in
// CUDA 13.0 (Apache-2.0 with LLVM exceptions). The library asks for tables by number, and writes its functions to the
// places that a table lists.
enum : std::uint32_t { NVTX_ETID_CALLBACKS = 1, NVTX_ETID_VERSIONINFO = 3 };
enum { NVTX_CB_MODULE_CORE = 1 };
enum { NVTX_CBID_CORE_RangePushA = 9, NVTX_CBID_CORE_RangePop = 11, NVTX_CBID_CORE_SIZE = 16 };
using Place = void**;

struct Callbacks {
  std::size_t bytes;
  int (*table_of_module)(int module, Place** table, unsigned* size);
};
struct VersionInfo {
  std::size_t bytes;
  std::uint32_t version, reserved;
  void (*set_injection_version)(std::uint32_t);
};

std::array<void*, NVTX_CBID_CORE_SIZE> functions{};

int table_of_module(int module, Place** table, unsigned* size) {
  static std::array<Place, NVTX_CBID_CORE_SIZE> places = [] {
    std::array<Place, NVTX_CBID_CORE_SIZE> made{};
    for (std::size_t i = 1; i < made.size(); ++i) made[i] = &functions[i];
    return made;
  }();
  if (module != NVTX_CB_MODULE_CORE) return 0;
  if (size) *size = static_cast<unsigned>(places.size());
  if (table) *table = places.data();
  return 1;
}

const void* table_of(std::uint32_t number) {
  static const Callbacks callbacks{sizeof(Callbacks), table_of_module};
  static const VersionInfo version{sizeof(VersionInfo), 3, 0, [](std::uint32_t) {}};
  return number == NVTX_ETID_CALLBACKS     ? static_cast<const void*>(&callbacks)
         : number == NVTX_ETID_VERSIONINFO ? static_cast<const void*>(&version)
                                           : nullptr;
}

}  // namespace

std::unique_ptr<const Nvtx> Nvtx::of(const char* library) {
  void* const opened = ::dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  if (!opened) return nullptr;
  auto made = std::make_unique<Nvtx>();
  using Initialize = int (*)(const void* (*)(std::uint32_t));
  if (const auto initialize = reinterpret_cast<Initialize>(::dlsym(opened, "InitializeInjectionNvtx2"))) {
    functions = {};
    if (!initialize(table_of)) return nullptr;
    made->push_ = reinterpret_cast<int (*)(const char*)>(functions[NVTX_CBID_CORE_RangePushA]);
    made->pop_ = reinterpret_cast<int (*)()>(functions[NVTX_CBID_CORE_RangePop]);
  } else {
    made->push_ = reinterpret_cast<int (*)(const char*)>(::dlsym(opened, "nvtxRangePushA"));
    made->pop_ = reinterpret_cast<int (*)()>(::dlsym(opened, "nvtxRangePop"));
  }
  return made->push_ && made->pop_ ? std::move(made) : nullptr;
}

std::unique_ptr<const Nvtx> Nvtx::attached() {
  const char* const library = std::getenv("NVTX_INJECTION64_PATH");
  if (!library || !*library) return nullptr;
  if (std::unique_ptr<const Nvtx> found = of(library)) return found;
  return of("libnvToolsExt.so.1");
}

}  // namespace tessera::internal::profile
