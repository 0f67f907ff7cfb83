#include "model/tokenizer/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "model/files/input_file.hpp"
#include "model/tokenizer/byte_alphabet.hpp"
#include "model/tokenizer/characters.hpp"
#include "model/tokenizer/merger.hpp"
#include "model/tokenizer/normalize.hpp"
#include "model/tokenizer/token_texts.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/model/utf8.hpp"

namespace tessera::internal {
namespace {

AddedMatcher matcher_of(const TokenizerSpec& spec, bool normalized_ones) {
  std::vector<AddedToken> tokens;
  for (AddedToken token : spec.added) {
    if (token.normalized != normalized_ones) continue;
    std::string memory;
    if (normalized_ones) token.text = std::string(normalized(token.text, spec.normalizer, false, memory));
    tokens.push_back(std::move(token));
  }
  return AddedMatcher(std::move(tokens));
}

}  // namespace

struct TokenizerEngine::Work {
  std::vector<std::int32_t>& ids;
  bool continues;  ///< the text continues another one
  MatchMemory memory{};
  Merger merger{};
};

TokenizerEngine::TokenizerEngine(TokenizerSpec spec)
    : spec_(std::move(spec)),
      texts_(token_texts(spec_)),
      raw_(matcher_of(spec_, false)),
      normalized_(matcher_of(spec_, true)) {
  const auto check_id = [&](std::optional<std::int32_t> id, const char* what) {
    if (id && (*id < 0 || static_cast<std::size_t>(*id) >= texts_.size()))
      throw Error(fmt::format("{}: {} is {}, but ids run from 0 to {}", spec_.source, what, *id, texts_.size() - 1));
  };
  for (const std::int32_t id : spec_.prefix) check_id(id, "a token before each text");
  for (const std::int32_t id : spec_.suffix) check_id(id, "a token after each text");
  check_id(spec_.unknown, "the unknown token");
  check_id(spec_.bos, "the beginning-of-text token");
  check_id(spec_.eos, "the end-of-text token");
  for (const DecoderStep& step : spec_.decoder) {
    const auto* metaspace = std::get_if<MetaspaceText>(&step);
    first_loses_blanks_ |= metaspace && metaspace->prepended;
  }
  byte_ids_ = byte_ids(spec_);
  if (!spec_.scores.empty()) make_merges();
  make_cuts();
}

void TokenizerEngine::make_merges() {
  if (spec_.scores.size() != texts_.size())
    throw Error(fmt::format("{}: it has {} scores for {} tokens", spec_.source, spec_.scores.size(), texts_.size()));
  std::vector<float> scores = spec_.scores;
  std::ranges::sort(scores, std::greater<>());
  scores.erase(std::ranges::unique(scores).begin(), scores.end());
  for (const auto& [text, id] : spec_.vocabulary) {
    const float score = spec_.scores[static_cast<std::size_t>(id)];
    const auto rank = std::ranges::lower_bound(scores, score, std::greater<>()) - scores.begin();
    const std::string_view all = text;
    for (std::size_t at = first_character_size(all); at < all.size(); at += first_character_size(all.substr(at))) {
      const std::optional<std::int32_t> left = spec_.vocabulary.find(all.substr(0, at));
      const std::optional<std::int32_t> right = left ? spec_.vocabulary.find(all.substr(at)) : std::nullopt;
      if (right) spec_.merges.add({*left, *right, id, static_cast<std::uint32_t>(rank)});
    }
  }
}

void TokenizerEngine::make_cuts() {
  constexpr std::size_t most = 32;  // each calls the next one
  if (spec_.cuts.size() > most)
    throw Error(
        fmt::format("{}: it cuts texts in {} steps; at most {} are supported", spec_.source, spec_.cuts.size(), most));
  for (const CutStep& step : spec_.cuts) {
    if (const auto* cut = std::get_if<Cut>(&step)) {
      steps_.emplace_back(
          CompiledCut{TextPattern(cut->pattern, cut->literal, spec_.source), cut->behavior, cut->invert});
    } else if (const auto* metaspace = std::get_if<Metaspace>(&step)) {
      steps_.emplace_back(*metaspace);
      if (!metaspace->split) continue;
      steps_.emplace_back(
          CompiledCut{TextPattern(metaspace->replacement, true, spec_.source), CutBehavior::merged_with_next, false});
    } else {
      steps_.emplace_back(PrefixSpace{});
    }
  }
}

std::vector<std::int32_t> TokenizerEngine::encode(std::string_view text, TextPlace place) const {
  if (text.size() > std::numeric_limits<std::int32_t>::max()) throw Error("the text is longer than 2 GiB; split it");
  if (const auto at = find_invalid_utf8(text)) {
    throw Error(fmt::format("the text is not UTF-8: byte 0x{:02x} at offset {}; convert it, for example with iconv",
                            static_cast<unsigned char>(text[*at]), *at));
  }
  for (const Step& step : steps_)
    if (const auto* cut = std::get_if<CompiledCut>(&step)) cut->pattern.require();

  std::vector<std::int32_t> ids;
  if (place == TextPlace::whole || place == TextPlace::beginning) ids = spec_.prefix;
  Work work{.ids = ids, .continues = place == TextPlace::continuation};
  bool first = true;
  const auto token = [&](std::int32_t id) { ids.push_back(id), first = false; };
  const auto piece = [&](std::string_view part) { encode_piece(0, part, std::exchange(first, false), work); };
  std::string memory;
  const auto segment = [&](std::string_view part) {
    const std::string_view changed = normalized(part, spec_.normalizer, first && work.continues, memory);
    normalized_.split(changed, work.memory, piece, token);
  };
  raw_.split(text, work.memory, segment, token);
  if (place == TextPlace::whole) ids.insert(ids.end(), spec_.suffix.begin(), spec_.suffix.end());
  return ids;
}

template <typename Use>
void TokenizerEngine::cut(const CompiledCut& step, std::string_view piece, MatchMemory& memory, const Use& use) const {
  // A part waits in [begin, end) for those that join it.
  std::size_t begin = 0, end = 0;
  bool waits_matched = false;
  const auto flush = [&] {
    if (begin < end) use(piece.substr(begin, end - begin));
    begin = end;
  };
  const auto take = [&](std::size_t to, bool matched) {
    if (to == end) return;
    matched ^= step.invert;
    bool joins = false;
    switch (step.behavior) {
      case CutBehavior::removed:
      case CutBehavior::isolated:
        break;
      case CutBehavior::merged_with_previous:
        joins = matched && !waits_matched;
        break;
      case CutBehavior::merged_with_next:
        joins = waits_matched && !matched;
        break;
      case CutBehavior::contiguous:
        joins = matched == waits_matched;
        break;
    }
    if (!joins) flush();
    waits_matched = matched;
    end = to;
    if (step.behavior == CutBehavior::removed && matched) begin = end;
  };
  for (std::size_t at = 0; at < piece.size();) {
    const auto [from, to] = step.pattern.find(piece, at, memory);
    if (from == piece.npos) break;
    take(from, false);
    take(to, true);
    at = to;
  }
  take(piece.size(), false);
  flush();
}

void TokenizerEngine::encode_piece(std::size_t step, std::string_view piece, bool first, Work& work) const {
  if (step == steps_.size())
    return spec_.model == TokenModel::byte_level ? encode_bytes(piece, work) : encode_characters(piece, work);
  if (const auto* pattern = std::get_if<CompiledCut>(&steps_[step])) {
    cut(*pattern, piece, work.memory,
        [&](std::string_view part) { encode_piece(step + 1, part, first && part.data() == piece.data(), work); });
    return;
  }
  const bool may_prepend = !(first && work.continues);
  if (const auto* metaspace = std::get_if<Metaspace>(&steps_[step])) {
    std::string changed = with_replaced(piece, " ", metaspace->replacement);
    const bool prepends =
        metaspace->prepended == Metaspace::always || (metaspace->prepended == Metaspace::first && first);
    if (prepends && may_prepend && !changed.starts_with(metaspace->replacement))
      changed.insert(0, metaspace->replacement);
    encode_piece(step + 1, changed, first, work);
  } else if (!may_prepend || piece.starts_with(' ')) {
    encode_piece(step + 1, piece, first, work);
  } else {
    encode_piece(step + 1, " " + std::string(piece), first, work);
  }
}

void TokenizerEngine::encode_bytes(std::string_view piece, Work& work) const {
  if (spec_.ignore_merges) {
    if (const auto id = spec_.vocabulary.find(spell(piece))) return work.ids.push_back(*id);
  }
  bool after_unknown = false;
  for (const char byte : piece) {
    const std::int32_t id = byte_ids_[static_cast<unsigned char>(byte)];
    if (id >= 0) {
      work.merger.add(id);
    } else if (spec_.unknown && !(after_unknown && spec_.fuse_unknown)) {
      work.merger.add(*spec_.unknown);
    }
    after_unknown = id < 0;
  }
  work.merger.merge(spec_.merges, work.ids);
}

void TokenizerEngine::encode_characters(std::string_view piece, Work& work) const {
  if (spec_.ignore_merges) {
    if (const auto id = spec_.vocabulary.find(piece)) return work.ids.push_back(*id);
  }
  const auto has_token = [&](char byte) { return byte_ids_[static_cast<unsigned char>(byte)] >= 0; };
  bool after_unknown = false;
  while (!piece.empty()) {
    const std::string_view character = piece.substr(0, first_character_size(piece));
    piece.remove_prefix(character.size());
    const std::optional<std::int32_t> id = spec_.vocabulary.find(character);
    const bool known = id || (spec_.byte_fallback && std::ranges::all_of(character, has_token));
    if (id) {
      work.merger.add(*id);
    } else if (known) {
      for (const char byte : character) work.merger.add(byte_ids_[static_cast<unsigned char>(byte)]);
    } else if (!spec_.unknown) {
      throw Error(
          fmt::format("{}: there is no token for {}, and no unknown token", spec_.source, in_quotes(character)));
    } else if (!(after_unknown && spec_.fuse_unknown)) {
      work.merger.add(*spec_.unknown);
    }
    after_unknown = !known;
  }
  work.merger.merge(spec_.merges, work.ids);
}

std::optional<std::int32_t> TokenizerEngine::id_of(std::string_view bytes) const {
  if (bytes.empty()) return std::nullopt;
  for (const AddedToken& token : spec_.added)
    if (token.text == bytes) return token.id;
  if (spec_.model == TokenModel::byte_level) return spec_.vocabulary.find(spell(bytes));
  std::optional<std::int32_t> byte;
  for (std::size_t id = 0; id < texts_.size(); ++id) {
    if (texts_[id] != bytes) continue;
    if (byte_ids_[static_cast<unsigned char>(bytes[0])] != static_cast<std::int32_t>(id) || bytes.size() > 1)
      return static_cast<std::int32_t>(id);
    byte = static_cast<std::int32_t>(id);  // a token of its own is better than <0x41>
  }
  return byte;
}

}  // namespace tessera::internal
