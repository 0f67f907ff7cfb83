#include "model/tokenizer/token_texts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "model/files/input_file.hpp"
#include "model/tokenizer/byte_alphabet.hpp"
#include "model/tokenizer/normalize.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

[[noreturn]] void refuse_spec(std::string_view source, std::string_view what) {
  throw Error(fmt::format("{}: {}", source, what));
}

/// The token of a byte, as files spell it.
std::string spelled(TokenModel model, std::size_t byte) {
  const char character = static_cast<char>(byte);
  return model == TokenModel::byte_level ? spell({&character, 1}) : fmt::format("<0x{:02X}>", byte);
}

void strip(std::string& text, const StripToken& step) {
  std::size_t begin = 0, end = text.size();
  const std::string_view all = text, c = step.character;
  for (std::uint32_t n = 0; n < step.start && all.substr(begin, end - begin).starts_with(c); ++n) begin += c.size();
  for (std::uint32_t n = 0; n < step.stop && all.substr(begin, end - begin).ends_with(c); ++n) end -= c.size();
  text = text.substr(begin, end - begin);
}

/// The text of an added token as it is decoded: that of a normalized one is its normalized form.
std::string text_of(const AddedToken& token, const TokenizerSpec& spec) {
  std::string memory;
  return std::string(token.normalized ? normalized(token.text, spec.normalizer, false, memory) : token.text);
}

/// The bytes of a token; nullopt if it is not spelled in the byte alphabet.
std::optional<std::string> decoded(std::string text, bool is_added, const std::vector<DecoderStep>& steps) {
  for (const DecoderStep& step : steps) {
    if (std::holds_alternative<ByteLevelText>(step)) {
      std::optional<std::string> bytes = is_added ? std::move(text) : unspell(text);
      if (!bytes) return std::nullopt;
      text = *std::move(bytes);
    } else if (const auto* replace = std::get_if<Replace>(&step)) {
      text = with_replaced(text, replace->from, replace->to);
    } else if (const auto* strip_step = std::get_if<StripToken>(&step)) {
      strip(text, *strip_step);
    } else if (const auto* metaspace = std::get_if<MetaspaceText>(&step)) {
      text = with_replaced(text, metaspace->replacement, " ");
    } else if (const int byte = fallback_byte(text); byte >= 0) {
      text = static_cast<char>(byte);
    }
  }
  return text;
}

}  // namespace

int fallback_byte(std::string_view token) {
  int byte = -1;
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  return error == std::errc() && end == token.data() + 5 ? byte : -1;
}

std::array<std::int32_t, 256> byte_ids(const TokenizerSpec& spec) {
  std::array<std::int32_t, 256> ids{};
  for (std::size_t byte = 0; byte < 256; ++byte)
    ids[byte] = spec.vocabulary.find(spelled(spec.model, byte)).value_or(-1);
  return ids;
}

void require_byte_ids(const TokenizerSpec& spec) {
  const std::array<std::int32_t, 256> ids = byte_ids(spec);
  const auto byte = static_cast<std::size_t>(std::ranges::find(ids, -1) - ids.begin());
  if (byte < ids.size())
    refuse_spec(spec.source, fmt::format("it has no token {} for byte 0x{:02x}; only byte-level vocabularies are read",
                                         in_quotes(spelled(spec.model, byte)), byte));
}

std::vector<std::string> token_texts(const TokenizerSpec& spec) {
  const auto source_of = [&](const AddedToken& token) -> std::string_view {
    return token.source.empty() ? spec.source : token.source;
  };
  std::map<std::string_view, const AddedToken*> added;
  std::size_t count = spec.vocabulary.size();
  for (const AddedToken& token : spec.added) {
    if (token.text.empty()) refuse_spec(source_of(token), "it has an empty token; remove it");
    if (!added.try_emplace(token.text, &token).second)
      refuse_spec(source_of(token), fmt::format("it adds {} twice; keep one", in_quotes(token.text)));
    const std::optional<std::int32_t> known = spec.vocabulary.find(token.text);
    if (known && *known != token.id)
      refuse_spec(source_of(token), fmt::format("it gives {} id {}, but the vocabulary {}; make them agree",
                                                in_quotes(token.text), token.id, *known));
    count += !known;
  }
  // Without gaps there are as many ids as tokens, each less than their number and none twice: so none is missing.
  const std::size_t most = spec.gaps ? count * 2 + 1024 : count;
  std::vector<std::string> texts;
  std::vector<bool> taken(most);
  const auto place = [&](std::string_view source, std::string_view name, std::string bytes, std::int32_t id) {
    const auto at = static_cast<std::size_t>(id);
    if (id < 0 || at >= most)
      refuse_spec(source, fmt::format("{} has id {}, but the ids of {} tokens run from 0 to {}", in_quotes(name), id,
                                      count, most - 1));
    if (taken[at])
      refuse_spec(source, fmt::format("{} has id {}, like another token; ids must differ", in_quotes(name), id));
    taken[at] = true;
    if (at >= texts.size()) texts.resize(at + 1);
    texts[at] = std::move(bytes);
  };
  texts.reserve(count);
  for (const auto& [text, id] : spec.vocabulary) {
    const auto known = added.find(text);
    const bool is_added = known != added.end();
    std::optional<std::string> bytes = decoded(is_added ? text_of(*known->second, spec) : text, is_added, spec.decoder);
    if (!bytes)
      refuse_spec(spec.source,
                  fmt::format("{} has a character outside GPT-2's byte alphabet; if it is a special token, add it "
                              "to the added tokens",
                              in_quotes(text)));
    place(spec.source, text, *std::move(bytes), id);
  }
  for (const AddedToken& token : spec.added)
    if (!spec.vocabulary.find(token.text))
      place(source_of(token), token.text, *decoded(text_of(token, spec), true, spec.decoder), token.id);
  return texts;
}

}  // namespace tessera::internal
