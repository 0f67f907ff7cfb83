// Where the stages of a kernel's way to code are shown: TESSERA_DUMP and its relatives.
#pragma once
#include <string>
#include <string_view>

#include "jit/options/options.hpp"

namespace tessera::internal {

/// Names the files of a kernel, "softmax-1f2e3d4c": by its name and by what else makes it another than its namesakes.
/// `text` counts as in a cache key; NVRTC does not, so that an edited file is found again whatever NVRTC is there.
std::string dump_stem(std::string_view kernel, std::string_view architecture, std::string_view text);
/// The file of a stage: "softmax-1f2e3d4c.cu" for "cuda", ".remarks.json" for "remarks-json", else with the stage's name
/// as its ending.
std::string dump_file(std::string_view stem, std::string_view stage);

/// Is the stage asked for, of this kernel?
bool wants_dump(const Options& options, std::string_view kernel, std::string_view stage);
/// Shows a stage on stderr, under the name of its file, or in that file, an OutputFile. Throws Error naming the folder.
void write_dump(const Options& options, std::string_view stem, std::string_view stage, std::string_view text);

}  // namespace tessera::internal
