// PTX as data: its lines, and where they come from.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tessera::internal {

struct PtxLine {
  std::string text;
  /// The lines of the compiled text that an instruction comes from: that of the innermost function, then of the call of
  /// that, and so on. None without line information, and for labels and declarations.
  std::vector<unsigned> lines = {};
};

/// Reads the PTX of a compilation with line information, and leaves out what only debuggers need.
std::vector<PtxLine> ptx_listing(std::string_view text);

}  // namespace tessera::internal
