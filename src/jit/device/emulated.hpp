// The emulator of generated kernels as a device. It is a part of the tests, so a program opens it when asked for it by
// name.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "jit/backend/backend.hpp"

namespace tessera::internal {

/// Where libtessera_emulator.so is looked for, in this order, as SharedLibrary::open takes places: what
/// TESSERA_EMULATOR names, a file or a folder, and nothing else; or, if that is unset, beside the library (or the
/// program) that Tessera is linked into, beside the program, where an install has libraries as seen from the program,
/// the folder of libraries that Tessera was configured with, and the loader path.
std::vector<std::string> emulator_places();

/// The file that was opened, of the first place that has one; empty where the program was linked with an emulator.
/// Throws Error with the places, and how to get an emulator.
std::filesystem::path emulator_path();

/// The program's own emulator where it was linked with one, else that of emulator_path(). Throws as that does, and if
/// the library is of another version.
std::shared_ptr<DeviceBackend> emulated_backend();

}  // namespace tessera::internal

/// An emulator exports its entry, and the version() of the Tessera it was built with.
extern "C" void tessera_emulated_backend(std::shared_ptr<tessera::internal::DeviceBackend>& backend);
extern "C" const char* tessera_emulator_version();
