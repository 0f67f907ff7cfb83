#include "jit/compile/dump.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstdio>
#include <system_error>

#include "jit/compile/cache_key.hpp"
#include "jit/compile/nvrtc.hpp"
#include "jit/options/files.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {

std::string dump_stem(std::string_view kernel, std::string_view architecture, std::string_view text) {
  const CacheKey key({.compiler = {}, .architecture = architecture, .flags = {}, .source = text});
  return fmt::format("{}-{}", file_stem(kernel), key.hex().substr(0, 8));
}

std::string dump_file(std::string_view stem, std::string_view stage) {
  return fmt::format("{}.{}", stem, stage == "cuda" ? "cu" : stage == "remarks-json" ? "remarks.json" : stage);
}

bool wants_dump(const Options& options, std::string_view kernel, std::string_view stage) {
  return std::find(options.dump.begin(), options.dump.end(), stage) != options.dump.end() &&
         ::fnmatch(options.dump_filter.c_str(), std::string(kernel).c_str(), 0) == 0;
}

void write_dump(const Options& options, std::string_view stem, std::string_view stage, std::string_view text) {
  const std::string file = dump_file(stem, stage);
  if (options.dump_dir.empty()) {
    // In one write, because other threads dump, too.
    const std::string piece = fmt::format("==== {} ====\n{}{}\n", file, text, text.ends_with('\n') ? "" : "\n");
    std::fwrite(piece.data(), 1, piece.size(), stderr);
    return;
  }
  try {
    const std::filesystem::path folder = std::filesystem::absolute(options.dump_dir);
    make_folder(folder);
    OutputFile output(folder / file);
    output.write(text);
    output.publish();
  } catch (const std::system_error& e) {
    throw Error(fmt::format("TESSERA_DUMP_DIR={}: {}", options.dump_dir, e.what()));
  }
}

}  // namespace tessera::internal
