// The prelude as kernels see it in the emulator, with the emulator's own bodies for device items.
#pragma once
#include <string>
#include <vector>

namespace tessera::internal::emulator {

/// The body of one device item.
struct EmulatedItem {
  std::string name;
  std::string text;
};

/// All items of tests/emulator/prelude/*.hpp, which are separated by one blank line; files are in the order of their
/// names.
std::vector<EmulatedItem> emulated_items();

/// All items of the prelude, each after those that it uses.
std::string emulated_prelude();

}  // namespace tessera::internal::emulator
