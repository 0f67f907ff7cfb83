// The prelude as kernels see it under the emulator: its device items have bodies of the emulator's own.
#pragma once
#include <string>
#include <vector>

namespace tessera::internal::emulator {

/// The body of one device item.
struct EmulatedItem {
  std::string name;
  std::string text;
};

/// All of them, from tests/emulator/prelude/*.hpp: items with one blank line between, in the order of the files' names.
std::vector<EmulatedItem> emulated_items();

/// All items of the prelude, each after those it uses.
std::string emulated_prelude();

}  // namespace tessera::internal::emulator
