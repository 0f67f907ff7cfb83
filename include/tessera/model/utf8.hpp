// UTF-8 as bytes arrive: is it valid, what stands in for what is not, and where a stream may be cut.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// Offset of the first byte that starts no valid UTF-8 character, or nothing if all of `bytes` is UTF-8.
/// Overlong forms, surrogates, values above U+10FFFF and a character cut off by the end are invalid (RFC 3629).
std::optional<std::size_t> find_invalid_utf8(std::string_view bytes);

/// `bytes` with each maximal part that is no UTF-8 replaced by U+FFFD: Unicode 14, section 3.9, "substitution of
/// maximal subparts", which is Python's `bytes.decode(errors="replace")`.
std::string replace_invalid_utf8(std::string_view bytes);

/// `replace_invalid_utf8` for bytes that come in parts. What `push` and, at the end, `finish` return is the same text,
/// put together, however the bytes were split; no part ever ends within a character.
class Utf8Stream {
 public:
  /// The text that is certain by now. Held back are at most 3 bytes, the start of a character that may yet be
  /// completed.
  std::string push(std::string_view bytes);

  /// U+FFFD if a character was left incomplete, else nothing. The stream can then be used anew.
  std::string finish();

 private:
  std::string held_;
};

}  // namespace internal
}  // namespace tessera
