// The files that emulated texts include.
#pragma once
#include <filesystem>

namespace tessera::internal::emulator {

/// Their folder: in the source tree, or beside the emulator if it was installed.
std::filesystem::path texts_folder();

}  // namespace tessera::internal::emulator
