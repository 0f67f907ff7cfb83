#include "emulator/texts.hpp"

#include <dlfcn.h>

#include <system_error>

namespace tessera::internal::emulator {

std::filesystem::path texts_folder() {
  namespace fs = std::filesystem;
  Dl_info here{};
  if (::dladdr(reinterpret_cast<void*>(&texts_folder), &here) != 0 && here.dli_fname) {
    std::error_code unknown;
    fs::path installed = fs::canonical(here.dli_fname, unknown).parent_path() / "tessera-emulator";
    if (fs::is_directory(installed, unknown)) return installed;
  }
  return TESSERA_EMULATOR_DIR;
}

}  // namespace tessera::internal::emulator
