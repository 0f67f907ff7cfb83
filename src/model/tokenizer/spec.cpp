#include "model/tokenizer/spec.hpp"

#include <fmt/format.h>

#include "model/files/input_file.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {

constexpr std::string_view gpt2_cuts = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const std::string_view gpt2_pattern = gpt2_cuts;

namespace {

constexpr std::string_view each_digit = R"(\p{N})";
constexpr std::string_view llama3_cuts =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view qwen2_cuts =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view tekken_cuts =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

const std::vector<PreTokenizer>& pre_tokenizers() {
  static const std::vector<PreTokenizer> all = {
      {.name = "gpt-2", .patterns = {gpt2_cuts}},
      {.name = "mpt", .patterns = {gpt2_cuts}, .nfc = true},
      {.name = "olmo", .patterns = {gpt2_cuts}, .nfc = true},
      {.name = "phi-2", .patterns = {gpt2_cuts}},
      {.name = "smollm", .patterns = {each_digit, gpt2_cuts}},
      {.name = "starcoder", .patterns = {each_digit, gpt2_cuts}},
      {.name = "refact", .patterns = {each_digit, gpt2_cuts}},
      {.name = "llama-bpe", .patterns = {llama3_cuts}, .ignore_merges = true},
      {.name = "llama3", .patterns = {llama3_cuts}, .ignore_merges = true},
      {.name = "llama-v3", .patterns = {llama3_cuts}, .ignore_merges = true},
      {.name = "dbrx", .patterns = {llama3_cuts}},
      {.name = "smaug-bpe", .patterns = {llama3_cuts}},
      {.name = "qwen2", .patterns = {qwen2_cuts}, .nfc = true},
      {.name = "deepseek-r1-qwen", .patterns = {qwen2_cuts}, .nfc = true},
      {.name = "tekken", .patterns = {tekken_cuts}, .ignore_merges = true},
  };
  return all;
}

}  // namespace

const PreTokenizer* find_pre_tokenizer(std::string_view name) {
  for (const PreTokenizer& each : pre_tokenizers())
    if (each.name == name) return &each;
  return nullptr;
}

std::string pre_tokenizer_names() {
  std::string names;
  for (const PreTokenizer& each : pre_tokenizers()) names += (names.empty() ? "" : ", ") + std::string(each.name);
  return names;
}

void use_byte_level(TokenizerSpec& spec, const PreTokenizer& pre) {
  spec.model = TokenModel::byte_level;
  if (pre.nfc) spec.normalizer.emplace_back(UnicodeForm{UnicodeForm::nfc});
  for (const std::string_view pattern : pre.patterns) spec.cuts.emplace_back(Cut{.pattern = std::string(pattern)});
  spec.ignore_merges = pre.ignore_merges;
  spec.decoder.emplace_back(ByteLevelText{});
}

void use_sentencepiece(TokenizerSpec& spec, bool space_prefix) {
  spec.model = TokenModel::characters;
  spec.byte_fallback = spec.fuse_unknown = true;
  if (space_prefix) spec.normalizer.emplace_back(Prepend{"\u2581"});
  spec.normalizer.emplace_back(Replace{" ", "\u2581"});
  spec.decoder = {Replace{"\u2581", " "}, ByteFallback{}};
  if (space_prefix) spec.stripped = " ", spec.stripped_count = 1;
}

void add_merge(TokenizerSpec& spec, std::string_view left, std::string_view right, const MergePlace& place) {
  const auto id = [&](std::string_view token) {
    const std::optional<std::int32_t> known = spec.vocabulary.find(token);
    if (!known)
      throw Error(fmt::format("{}{}: {} is not in the vocabulary; merges and vocabulary must belong to one model",
                              place.before, place.number, in_quotes(token)));
    return *known;
  };
  const MergeTable::Merge merge{id(left), id(right), id(std::string(left).append(right)),
                                static_cast<std::uint32_t>(spec.merges.size())};
  if (!spec.merges.add(merge))
    throw Error(fmt::format("{}{}: {} occurs twice; keep the first", place.before, place.number,
                            in_quotes(fmt::format("{} {}", left, right))));
}

void add_merge(TokenizerSpec& spec, std::string_view line, const MergePlace& place) {
  const std::size_t space = line.find(' ');
  const std::string_view left = line.substr(0, space);
  const std::string_view right = space == line.npos ? "" : line.substr(space + 1);
  if (left.empty() || right.empty() || right.find(' ') != right.npos)
    throw Error(
        fmt::format("{}{}: {} is not two tokens with a space between", place.before, place.number, in_quotes(line)));
  add_merge(spec, left, right, place);
}

}  // namespace tessera::internal
