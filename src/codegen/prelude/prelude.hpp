// The prelude: device functions and types that generated kernels use. The files prelude/*.cuh are embedded in the
// library as text. A kernel's text begins with the items that it uses, so it includes no headers.
//
// A file consists of items separated by one blank line; an item is a comment and one function, struct or alias. Items
// in prelude/ are plain C++ for any compiler. Items in prelude/device/ wrap an instruction, a builtin or a keyword of
// CUDA; to run kernels on a CPU, supply other bodies for them.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace tessera::internal {

/// A function, struct or alias of the prelude. Overloads are items with the same name.
struct PreludeItem {
  std::string_view file;  ///< "device/shuffle.cuh"
  std::string_view name;  ///< "shuffle_xor"
  std::string_view text;  ///< includes its comment, but no newline at the end
  bool device;            ///< in prelude/device/
};

/// All items, each after those that it uses; types come first. Valid for the life of the process.
std::span<const PreludeItem> prelude_items();

/// The text of the items whose names occur in `kernel_text` outside of comments and strings, and of those that they
/// use, in the order of prelude_items(), separated by a blank line; empty if there are none. Overloads for storage
/// types (f16, i8, pred and the like) that it does not name are left out. Overloads for double are
/// left out unless it names the type, has a double literal or calls a function that returns a double.
std::string prelude_for(std::string_view kernel_text);

}  // namespace tessera::internal
