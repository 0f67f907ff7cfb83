// The prelude: device functions and types that generated kernels use. They stand in prelude/*.cuh, which are part of
// the library as text; a kernel's text begins with those it uses, so that it includes nothing.
//
// A file consists of items with one blank line between; an item is a comment and one function, struct or alias. Those
// in prelude/ are plain C++, which any compiler takes. Those in prelude/device/ wrap an instruction, a builtin or a
// keyword of CUDA; whoever runs kernels on a CPU has bodies of his own for them.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace tessera::internal {

/// A function, struct or alias of the prelude. Overloads are items of one name.
struct PreludeItem {
  std::string_view file;  ///< "device/shuffle.cuh"
  std::string_view name;  ///< "shuffle_xor"
  std::string_view text;  ///< with its comment, without a newline at the end
  bool device;            ///< in prelude/device/
};

/// All items, each after those it uses; types come first. Valid for the life of the process.
std::span<const PreludeItem> prelude_items();

/// The text of the items whose names stand in `kernel_text` outside of comments and strings, and of those that they
/// use, in the order of prelude_items(), a blank line between; empty if there are none. Overloads for types of stored
/// elements (f16, bf16, f8e4m3, f8e5m2, i8, i16, u8, u16) that it does not name stay out, and those for double if
/// nothing in it is one: no name of the type, no digits of one, no function that gives one.
std::string prelude_for(std::string_view kernel_text);

}  // namespace tessera::internal
