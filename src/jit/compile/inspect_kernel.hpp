// The inspector's page of a compiled kernel.
#pragma once
#include <filesystem>
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

/// The command line of this process, for a shell.
std::string command_line();

/// Some of the facts, in a line.
std::string description(const InspectedKernel& kernel);

/// Writes a page, or index.html with a line for each page in a folder. Throws std::system_error or std::runtime_error
/// that names the file.
void write_page(const std::filesystem::path& file, std::string_view page);
void write_index(const std::filesystem::path& folder);

}  // namespace tessera::internal
