// Tokenizers of GGUF files: the keys tokenizer.ggml.* (github.com/ggml-org/ggml, docs/gguf.md).
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "model/files/input_file.hpp"
#include "model/tokenizer/read.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/model/gguf.hpp"
#include "tessera/model/utf8.hpp"

namespace tessera::internal {
namespace {

// tokenizer.ggml.token_type of a token.
enum TokenType : std::int64_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

constexpr std::string_view model_key = "tokenizer.ggml.model", pre_key = "tokenizer.ggml.pre",
                           tokens_key = "tokenizer.ggml.tokens", types_key = "tokenizer.ggml.token_type",
                           merges_key = "tokenizer.ggml.merges", scores_key = "tokenizer.ggml.scores";

std::optional<std::int32_t> token_at(const Gguf& file, std::string_view key, std::size_t tokens) {
  const auto id = file.integer(key);
  if (!id) return std::nullopt;
  if (*id < 0 || std::cmp_greater_equal(*id, tokens))
    file.refuse(key, fmt::format("is {}, and the vocabulary has the tokens 0 to {}", *id, tokens - 1));
  return static_cast<std::int32_t>(*id);
}

void read_tokens(TokenizerSpec& spec, const Gguf& file, const std::vector<std::string>& tokens) {
  const auto types = file.integers(types_key);
  if (types && types->size() != tokens.size())
    file.refuse(types_key, fmt::format("has {} items for {} tokens", types->size(), tokens.size()));
  spec.vocabulary.reserve(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::int64_t type = types ? (*types)[i] : normal;
    const auto id = static_cast<std::int32_t>(i);
    if (find_invalid_utf8(tokens[i])) file.refuse(tokens_key, fmt::format("has a token that is not UTF-8, {}", i));
    if (type == control || type == user_defined || type == unknown) {
      if (tokens[i].empty()) file.refuse(tokens_key, fmt::format("has no text for token {}, which is an added one", i));
      spec.added.push_back({.text = tokens[i], .id = id, .special = type != user_defined});
      // Where bytes are spelled as characters, an added token is spelled as it is.
      if (spec.model == TokenModel::byte_level) continue;
    }
    if (!spec.vocabulary.add(tokens[i], id))
      file.refuse(tokens_key, fmt::format("has {} twice, the second time as token {}", in_quotes(tokens[i]), i));
  }
}

void read_merges(TokenizerSpec& spec, const Gguf& file) {
  const auto* const merges = file.texts(merges_key);
  if (!merges) file.refuse(merges_key, "is missing: there are no merges of tokens");
  const std::string before = fmt::format("{}: {}: item ", spec.source, merges_key);
  spec.merges.reserve(merges->size());
  for (std::size_t i = 0; i < merges->size(); ++i) add_merge(spec, (*merges)[i], {before, i});
}

/// The pre-tokenizer of a byte-level model.
const PreTokenizer& pre_tokenizer_of(const Gguf& file) {
  const std::string* const name = file.text(pre_key);
  const PreTokenizer* const found = find_pre_tokenizer(name ? *name : "gpt-2");
  if (!found)
    file.refuse(pre_key, fmt::format("is {}; supported are {}. Give prompts as ids: --prompt-ids 1,2,3", in_quotes(*name),
                                     pre_tokenizer_names()));
  return *found;
}

}  // namespace

TokenizerSpec read_tokenizer_gguf(const Gguf& file) {
  TokenizerSpec spec{.source = in_quotes(file.path().native())};
  const std::string* const model = file.text(model_key);
  if (!model) file.refuse(model_key, "is missing: the file has no tokenizer; give prompts as ids: --prompt-ids 1,2,3");
  const auto* const tokens = file.texts(tokens_key);
  if (!tokens || tokens->empty()) file.refuse(tokens_key, "is missing or empty");
  bool adds_bos = false;
  if (*model == "gpt2") {
    const PreTokenizer& pre = pre_tokenizer_of(file);
    use_byte_level(spec, pre);
    read_tokens(spec, file, *tokens);
    read_merges(spec, file);
    adds_bos = pre.name == "llama-bpe" || pre.name == "llama3" || pre.name == "llama-v3";
  } else if (*model == "llama") {
    use_sentencepiece(spec, file.flag("tokenizer.ggml.add_space_prefix").value_or(true));
    read_tokens(spec, file, *tokens);
    const auto* const scores = file.numbers(scores_key);
    if (!scores || scores->size() != tokens->size())
      file.refuse(scores_key, fmt::format("must have {} items, one for each token", tokens->size()));
    for (const double score : *scores) spec.scores.push_back(static_cast<float>(score));
    spec.unknown = token_at(file, "tokenizer.ggml.unknown_token_id", tokens->size());
    adds_bos = true;
  } else {
    file.refuse(model_key, fmt::format("is {}, it must be gpt2 or llama; give prompts as ids: --prompt-ids 1,2,3",
                                       in_quotes(*model)));
  }
  spec.bos = token_at(file, "tokenizer.ggml.bos_token_id", tokens->size());
  spec.eos = token_at(file, "tokenizer.ggml.eos_token_id", tokens->size());
  const auto around = [&](std::string_view key, bool otherwise, const std::optional<std::int32_t>& token, auto& tokens_around) {
    const auto given = file.flag(key);
    if (!given.value_or(otherwise)) return;
    if (given && !token) file.refuse(key, "is true, and the file does not say which token that is");
    if (token) tokens_around = {*token};
  };
  around("tokenizer.ggml.add_bos_token", adds_bos, spec.bos, spec.prefix);
  around("tokenizer.ggml.add_eos_token", false, spec.eos, spec.suffix);
  constexpr std::string_view template_key = "tokenizer.chat_template";
  if (const std::string* const text = file.text(template_key))
    spec.chat_template = ChatTemplate{fmt::format("{}: {}", spec.source, template_key), *text};
  return spec;
}

}  // namespace tessera::internal
