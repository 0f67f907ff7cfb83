#include "jit/emulated.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "jit/options/options.hpp"
#include "jit/options/shared_library.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

namespace fs = std::filesystem;

using Entry = decltype(&tessera_emulated_backend);
constexpr const char* entry_name = "tessera_emulated_backend";

std::vector<std::string> places() {
  const std::string file = "libtessera_emulator.so";
  const std::string& named = options().emulator;
  std::error_code unknown;
  if (!named.empty()) return {fs::is_directory(named, unknown) ? (fs::path(named) / file).string() : named};
  return {(fs::read_symlink("/proc/self/exe", unknown).parent_path() / file).string(), file};
}

Entry find_entry() {
  if (void* const own = ::dlsym(RTLD_DEFAULT, entry_name)) return reinterpret_cast<Entry>(own);
  try {
    // Never closed: devices and tensors that it made may outlive all else.
    static const auto* const library = new SharedLibrary(SharedLibrary::open("the emulator", places()));
    return library->symbol<Entry>(entry_name);
  } catch (const Error& error) {
    throw Error(fmt::format("{}; build it with `cmake --build build/release --target tessera_emulated_device` (it needs "
                            "TESSERA_TESTS=ON and Boost.Context), or let TESSERA_EMULATOR name the library or its folder",
                            error.what()));
  }
}

}  // namespace

std::shared_ptr<DeviceBackend> emulated_backend() {
  static const Entry entry = find_entry();
  std::shared_ptr<DeviceBackend> backend;
  entry(backend);
  return backend;
}

}  // namespace tessera::internal
