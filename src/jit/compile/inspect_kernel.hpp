// The inspector's page of a compiled kernel.
#pragma once
#include <string>
#include <string_view>

#include "jit/compile/nvrtc.hpp"
#include "jit/inspect/kernel_view.hpp"

namespace tessera::internal {

/// Adds what the compiler makes of a kernel: PTX, machine code with line information, and facts. `compiled` is the code
/// that runs; the machine code on the page is proven equal to it, or a note says that it is not. `request` compiles the
/// kernel's text. A part that cannot be had is replaced by the reason.
void add_code(InspectedKernel& kernel, const CompiledCode& compiled, CompileRequest request, const Nvrtc& nvrtc);

/// The facts that are known without a compiler.
void add_facts(InspectedKernel& kernel);

/// Some of the facts, in a line.
std::string description(const InspectedKernel& kernel);

}  // namespace tessera::internal
