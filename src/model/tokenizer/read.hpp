// Descriptions of tokenizers from files.
#pragma once
#include <filesystem>

#include "model/tokenizer/spec.hpp"
#include "tessera/model/gguf.hpp"

namespace tessera::internal {

/// The tokenizer of a GGUF file, or of a model folder: tokenizer.json if there is one, otherwise vocab.json and
/// merges.txt.
TokenizerSpec read_tokenizer(const std::filesystem::path& path);

/// The parts of `read_tokenizer`. All throw Error that names file and key or line.
TokenizerSpec read_tokenizer_json(const std::filesystem::path& file);
TokenizerSpec read_tokenizer_gguf(const Gguf& file);
TokenizerSpec read_vocabulary_and_merges(const std::filesystem::path& folder);

/// Sets `bos`, `eos` and `chat_template` by tokenizer_config.json, special_tokens_map.json and chat_template.jinja, as
/// far as these exist.
void read_marks(TokenizerSpec& spec, const std::filesystem::path& folder);

}  // namespace tessera::internal
