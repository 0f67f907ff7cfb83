// The emulator of generated kernels as a device. It belongs to the tests, so a program loads it only when it is
// requested by name.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "jit/backend/backend.hpp"

namespace tessera::internal::profile {
struct Profile;
}

namespace tessera::internal {

/// The places where libtessera_emulator.so is searched for, in order, as SharedLibrary::open takes them. If
/// TESSERA_EMULATOR is set, to a file or a folder, only that one. Otherwise: next to the library (or program) that
/// Tessera is linked into, next to the program, where an installation has its libraries relative to the program, the
/// library folder that Tessera was configured with, and the loader path.
std::vector<std::string> emulator_places();

/// The emulator library that was opened, from the first place that has one; empty if the program was linked with an
/// emulator. Throws Error that lists the places and says how to get an emulator.
std::filesystem::path emulator_path();

/// The program's own emulator if it was linked with one, otherwise the library at emulator_path(). Throws as
/// emulator_path() does, and if the versions differ.
std::shared_ptr<DeviceBackend> emulated_backend();

}  // namespace tessera::internal

/// An emulator exports its entry point, and the version() of the Tessera it was built with.
extern "C" void tessera_emulated_backend(std::shared_ptr<tessera::internal::DeviceBackend>& backend);
extern "C" const char* tessera_emulator_version();
/// Makes the emulator record into the program's profile, from now on; null: no longer.
extern "C" void tessera_emulator_profile(const tessera::internal::profile::Profile* profile);
