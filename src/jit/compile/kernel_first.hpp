// The order of a generated text. A compiler wants the helpers before the kernel, and a reader of a dump the kernel
// first. The reader's file includes itself where the helpers belong, so it compiles, too.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace tessera::internal {

/// A generated text with its helpers behind the kernel. `self` is how its file includes itself: its quoted name, which
/// compilers find from any folder, or __FILE__ if the name is not known. Any other text is returned unchanged.
std::string kernel_first(std::string_view text, std::string_view self);

/// The text from which kernel_first made this one; any other text is returned unchanged.
std::string helpers_first(std::string_view text);

/// The text of a file that was edited by hand, helpers first, with `#line` directives by which messages name the file's
/// own lines.
std::string with_own_lines(std::string_view text, const std::filesystem::path& file);

}  // namespace tessera::internal
