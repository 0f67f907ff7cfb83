// The device "emulated": generated CUDA C++, executed by the emulator.
#pragma once
#include "tessera/jit/device.hpp"

/// Device::parse("emulated"), with the emulator that is linked into this program. Every launch generates the kernel for
/// TESSERA_DUMP_ARCH, runs it on the CPU, and throws tessera::Error with the report if it is not clean.
/// TESSERA_EMULATOR_CHECKS=0 leaves out the checks of memory.
tessera::internal::Device emulated_device();
