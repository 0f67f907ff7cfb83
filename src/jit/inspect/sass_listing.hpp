// Machine code as data, from the texts of nvdisasm.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "jit/inspect/control_code.hpp"

namespace tessera::internal {

struct SassInstruction {
  unsigned address = 0;  ///< in bytes, in its section
  std::string label;     ///< ".L_x_1" if branches lead here; of a function's first instruction, its name
  std::string text;      ///< "@P0 EXIT"
  Encoding encoding = {};
  /// The lines of the compiled text that it comes from: that of the innermost function, then of the call of that, and
  /// so on. None without line information, and in code that the compiler adds.
  std::vector<unsigned> lines = {};
  int live_registers = 0;  ///< general-purpose ones that hold a value there; 0: unknown
};

/// Reads what `nvdisasm --print-code --print-instruction-encoding --print-line-info-inline` prints.
std::vector<SassInstruction> sass_listing(std::string_view text);

/// Adds what `nvdisasm --print-code --print-life-ranges --life-range-mode count` prints for the same code.
void add_live_registers(std::vector<SassInstruction>& listing, std::string_view text);

}  // namespace tessera::internal
