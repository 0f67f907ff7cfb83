// GPT-2's spelling of bytes as printable characters, in which files of byte-level models have their tokens.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace tessera::internal {

/// Each byte as one character: the byte itself where it is printable in Latin-1, otherwise the next character from
/// U+0100 on.
std::string spell(std::string_view bytes);

/// The inverse of `spell`; nullopt if `spelled`, which is UTF-8, has a character that stands for no byte.
std::optional<std::string> unspell(std::string_view spelled);

}  // namespace tessera::internal
