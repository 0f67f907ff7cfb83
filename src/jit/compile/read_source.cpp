#include "jit/compile/read_source.hpp"

#include <dlfcn.h>

#include <exception>
#include <filesystem>
#include <system_error>

#include "jit/options/files.hpp"

namespace tessera::internal {
namespace {

namespace fs = std::filesystem;

/// The program or library that has a location's text in it; empty if there is none.
fs::path binary_of(const Location& location) {
  Dl_info info{};
  if (::dladdr(location.file, &info) == 0 || !info.dli_fname) return {};
  // The program's name may be relative to a folder that is no longer the current one.
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error), binary = info.dli_fname;
  return !error && binary.filename() == program.filename() ? program : binary;
}

}  // namespace

std::optional<std::string> read_source(const Location& location) {
  constexpr std::uint64_t most = 4 << 20;
  try {
    const fs::path file = location.file, binary = binary_of(location);
    if (binary.empty() || fs::last_write_time(file) > fs::last_write_time(binary)) return {};
    return read_regular_file(file, most);
  } catch (const std::exception&) {  // no words then
    return {};
  }
}

}  // namespace tessera::internal
