// Output of the stages of compilation: TESSERA_DUMP and related options.
#pragma once
#include <string>
#include <string_view>

#include "jit/options/options.hpp"

namespace tessera::internal {

/// The stem of a kernel's dump files, "softmax-1f2e3d4c": its name and a hash that distinguishes it from others of the
/// same name. `text` counts as in a cache key. NVRTC does not count, so that an edited file is found again with any
/// NVRTC.
std::string dump_stem(std::string_view kernel, std::string_view architecture, std::string_view text);
/// The file name of a stage: "softmax-1f2e3d4c.cu" for "cuda", ".remarks.json" for "remarks-json", otherwise with the
/// name of the stage as its extension.
std::string dump_file(std::string_view stem, std::string_view stage);

/// Is this stage of this kernel to be dumped?
bool wants_dump(const Options& options, std::string_view kernel, std::string_view stage);
/// Prints a stage on stderr under the name of its file, or writes it to that file, an OutputFile. Throws Error that
/// names the folder.
void write_dump(const Options& options, std::string_view stem, std::string_view stage, std::string_view text);

}  // namespace tessera::internal
