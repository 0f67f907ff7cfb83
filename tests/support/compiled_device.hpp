// A device for tests: the CPU, which has NVRTC compile each kernel beside.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "codegen/generate.hpp"
#include "jit/compile/nvrtc.hpp"
#include "tessera/jit/device.hpp"

/// Every kernel is generated and compiled, for its class of launches, before it runs on the CPU: for each of
/// test_archs() that has a text of its own, and of those with the same text for the last. compile_check() says what
/// must hold. What does not is a failed check of the test that runs. Throws tessera::Error where there is no NVRTC.
tessera::internal::Device compiled_device();

/// What TESSERA_TEST_ARCHS says, "sm_90a"; "all" is all_archs().
std::vector<tessera::internal::Arch> test_archs();
const std::vector<tessera::internal::Arch>& all_archs();

/// What the compiler says of a kernel. Equal texts are compiled once: like programs and scripts/kernels, tests find
/// them in the cache of compiled kernels (TESSERA_CACHE_DIR), by text, options and compiler. Throws tessera::Error.
tessera::internal::CompileReport compile_report(const tessera::internal::KernelSource& source, tessera::internal::Arch arch);

/// Are a kernel's values kept in registers, and wgmma as it was written? CUDA's own sine, cosine and tangent of f64, which
/// `text` shows, have a table in local memory, for arguments beyond 1e5.
bool is_clean(tessera::internal::CompileReport report, std::string_view text);

/// Compiles a kernel. Empty, or what is wrong: it does not compile, warns, or, unless that is allowed, spills. Names
/// the file that its text is kept in.
std::string compile_check(const tessera::internal::KernelSource& source, tessera::internal::Arch arch, bool may_spill = false);
