// The files that emulated texts include.
#pragma once
#include <filesystem>

namespace tessera::internal::emulator {

/// Their folder: that of the sources, or, where the emulator was installed, the one beside it.
std::filesystem::path texts_folder();

}  // namespace tessera::internal::emulator
