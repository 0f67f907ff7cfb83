// UTF-8 from a stream of bytes: validation, replacement of invalid parts, and safe places to split.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// Offset of the first byte that does not begin a valid UTF-8 character, or nothing if all of `bytes` is UTF-8.
/// Overlong forms, surrogates, values above U+10FFFF and a character truncated by the end are invalid (RFC 3629).
std::optional<std::size_t> find_invalid_utf8(std::string_view bytes);

/// `bytes` with each maximal invalid part replaced by U+FFFD: Unicode 14, section 3.9, "substitution of maximal
/// subparts", like Python's `bytes.decode(errors="replace")`.
std::string replace_invalid_utf8(std::string_view bytes);

/// `replace_invalid_utf8` for bytes that arrive in parts. The concatenated results of `push` and the final `finish` are
/// the same text however the bytes were split; no part ends within a character.
class Utf8Stream {
 public:
  /// The text that is certain so far. At most 3 bytes are held back: the start of a character that may yet be
  /// completed.
  std::string push(std::string_view bytes);

  /// U+FFFD if a character is incomplete, else nothing. The stream can then be used again.
  std::string finish();

 private:
  std::string held_;
};

}  // namespace internal
}  // namespace tessera
