// The emulator of generated kernels as a device. It is a part of the tests, so a program opens it when asked for it by name.
#pragma once
#include <memory>

#include "jit/backend.hpp"

namespace tessera::internal {

/// The program's own emulator where it was linked with one, else that of libtessera_emulator.so. Throws Error with the
/// places where that was looked for, and what to build.
std::shared_ptr<DeviceBackend> emulated_backend();

}  // namespace tessera::internal

/// What an emulator has to offer: its only entry.
extern "C" void tessera_emulated_backend(std::shared_ptr<tessera::internal::DeviceBackend>& backend);
