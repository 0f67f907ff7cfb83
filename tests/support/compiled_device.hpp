// A device for tests: the CPU, with each kernel also compiled by NVRTC.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "codegen/generate.hpp"
#include "jit/compile/nvrtc.hpp"
#include "tessera/jit/device.hpp"

/// Every kernel is generated and compiled, for its class of launches, before it runs on the CPU: for each of
/// test_archs() that has a different text, and for the last of those with equal texts. compile_check() defines the
/// requirements. A violation is a failed check of the running test. Throws tessera::Error if there is no NVRTC.
tessera::internal::Device compiled_device();

/// The value of TESSERA_TEST_ARCHS, by default "sm_90a"; "all" is all_archs().
std::vector<tessera::internal::Arch> test_archs();
const std::vector<tessera::internal::Arch>& all_archs();

/// The compiler's report on a kernel. Equal texts are compiled once: like programs and scripts/kernels, tests find them
/// in the cache of compiled kernels (TESSERA_CACHE_DIR), by text, options and compiler. Throws tessera::Error.
tessera::internal::CompileReport compile_report(const tessera::internal::KernelSource& source, tessera::internal::Arch arch);

/// Are a kernel's values kept in registers, and wgmma not serialized? CUDA's own sine, cosine and tangent of f64, which
/// `text` shows, have a table in local memory, for arguments beyond 1e5.
bool is_clean(tessera::internal::CompileReport report, std::string_view text);

/// Compiles a kernel. Returns nothing, or the errors: it does not compile, has warnings, or, unless that is allowed,
/// spills. Names the file in which its text is stored.
std::string compile_check(const tessera::internal::KernelSource& source, tessera::internal::Arch arch, bool may_spill = false);

/// Compiles the test's share of kernels on all cores; compile_check() must find nothing. Skips without NVRTC.
void check_compiled(const std::vector<tessera::internal::KernelSource>& sources,
                    tessera::internal::Arch arch = tessera::internal::Arch::sm_90a);
