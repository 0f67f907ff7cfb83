// The bytes of each token: the decoder, as far as it concerns one token.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/tokenizer/spec.hpp"

namespace tessera::internal {

/// The bytes of each id; empty for an id without a token. Throws Error if the spec's ids, tokens or added tokens do not
/// fit together.
std::vector<std::string> token_texts(const TokenizerSpec& spec);

/// The tokens of single bytes; -1: there is none.
std::array<std::int32_t, 256> byte_ids(const TokenizerSpec& spec);
/// Throws Error if a byte-level model lacks one of them.
void require_byte_ids(const TokenizerSpec& spec);

/// The byte of a token <0x00> to <0xFF>; -1 for another token.
int fallback_byte(std::string_view token);

}  // namespace tessera::internal
