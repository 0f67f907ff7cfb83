// The circumstances of a measurement: machine, compiler, settings.
#pragma once
#include <cstdint>
#include <string>

#include "tessera/jit/device.hpp"

namespace tessera::internal {

/// "NVIDIA H200, sm_90, 132 multiprocessors, 1980 and 3201 MHz, driver 13.0".
std::string tune_machine(const Device& device);
/// The part of every record's key that names machine text, compiler, version and settings.
std::string tune_circumstances(const std::string& machine_text, bool is_gpu);
/// A class of extents: eight from one power of two to the next.
std::int64_t tune_class_of(std::int64_t extent);

}  // namespace tessera::internal
