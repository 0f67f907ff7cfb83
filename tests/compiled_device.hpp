// A device for tests: the CPU, which has NVRTC compile each kernel beside.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "codegen/generate.hpp"
#include "jit/device.hpp"

/// Every kernel is generated and compiled, for its class of launches, for each of test_archs() before it runs on the
/// CPU; compile_check() says what must hold. What does not is a failed check of the test that runs. Throws
/// tessera::Error where there is no NVRTC.
tessera::Device compiled_device();

/// What TESSERA_TEST_ARCHS says, "sm_80,sm_90a"; "all" is all_archs().
std::vector<tessera::Arch> test_archs();
const std::vector<tessera::Arch>& all_archs();

/// Compiles a kernel. Empty, or what is wrong: it does not compile, warns, or, unless that is allowed, spills. Names
/// the file that its text is kept in.
std::string compile_check(const tessera::KernelSource& source, tessera::Arch arch, bool may_spill = false);
