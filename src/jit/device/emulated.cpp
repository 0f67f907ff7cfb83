#include "jit/device/emulated.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "jit/options/options.hpp"
#include "jit/options/own_folders.hpp"
#include "jit/options/shared_library.hpp"
#include "jit/profile/profile.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/jit/version.hpp"

namespace tessera::internal {
namespace {

namespace fs = std::filesystem;

using Entry = decltype(&tessera_emulated_backend);
constexpr const char* entry_name = "tessera_emulated_backend";

std::string how_to_get_it() {
  if (const fs::path build = build_folder(); !build.empty())
    return fmt::format(
        "build it with `cmake --build {} --target tessera_emulated_device` (it needs Boost.Context), or set "
        "TESSERA_EMULATOR to the library or its folder",
        build.native());
  return "set TESSERA_EMULATOR to its folder, such as PREFIX/lib of a Tessera installed in PREFIX; it is installed if "
         "Boost.Context was available when Tessera was built";
}

/// Null if the program has its own emulator.
const SharedLibrary* library() {
  // Never closed: devices and tensors that the library made may outlive everything else.
  static const SharedLibrary* const opened = []() -> const SharedLibrary* {
    if (::dlsym(RTLD_DEFAULT, entry_name)) return nullptr;
    try {
      return new SharedLibrary(SharedLibrary::open("the emulator", emulator_places()));
    } catch (const Error& error) {
      throw Error(fmt::format("{}; {}", error.what(), how_to_get_it()));
    }
  }();
  return opened;
}

Entry find_entry() {
  const SharedLibrary* const from = library();
  if (!from) return reinterpret_cast<Entry>(::dlsym(RTLD_DEFAULT, entry_name));
  // The program and the emulator share the layout of graphs and devices, so their versions must be equal.
  const std::string_view its = from->symbol<decltype(&tessera_emulator_version)>("tessera_emulator_version")();
  if (its != version())
    throw Error(
        fmt::format("{} is the emulator of Tessera {}, and the program is linked with Tessera {}; set "
                    "TESSERA_EMULATOR to the folder of that version's emulator",
                    from->path().native(), its, version()));
  return from->symbol<Entry>(entry_name);
}

}  // namespace

std::vector<std::string> emulator_places() {
  const fs::path file = "libtessera_emulator.so";
  const std::string& named = options().emulator;
  std::error_code unknown;
  if (!named.empty()) return {fs::is_directory(named, unknown) ? (fs::path(named) / file).string() : named};
  std::vector<std::string> places;
  for (const fs::path& folder : own_folders()) places.push_back((folder / file).string());
  places.push_back(file.string());
  return places;
}

fs::path emulator_path() {
  const SharedLibrary* const opened = library();
  return opened ? opened->path() : fs::path();
}

std::shared_ptr<DeviceBackend> emulated_backend() {
  static const Entry entry = find_entry();
  std::shared_ptr<DeviceBackend> backend;
  entry(backend);
  // The library has a profiler of its own, which is off: it records into that of the program.
  using Share = decltype(&tessera_emulator_profile);
  const SharedLibrary* const from = library();
  static const Share share = from ? from->symbol<Share>("tessera_emulator_profile") : nullptr;
  if (share) share(profile::active());
  return backend;
}

}  // namespace tessera::internal
