// A tokenizer at work, made of its description.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/tokenizer/added_matcher.hpp"
#include "model/tokenizer/spec.hpp"
#include "model/tokenizer/text_pattern.hpp"
#include "tessera/model/tokenizer.hpp"

namespace tessera::internal {

/// Does not change once made: several threads may use one.
class TokenizerEngine {
 public:
  explicit TokenizerEngine(TokenizerSpec spec);

  /// See Tokenizer.
  std::vector<std::int32_t> encode(std::string_view text, TextPlace place) const;
  std::optional<std::int32_t> id_of(std::string_view bytes) const;

  const TokenizerSpec& spec() const { return spec_; }
  /// The bytes of each id.
  const std::vector<std::string>& texts() const { return texts_; }
  /// The text of the first token of a text: of some decoders without blanks.
  bool first_loses_blanks() const { return first_loses_blanks_; }

 private:
  struct Work;
  struct CompiledCut {
    TextPattern pattern;
    CutBehavior behavior;
    bool invert;
  };
  using Step = std::variant<CompiledCut, PrefixSpace, Metaspace>;

  void make_cuts();
  void make_merges();
  /// Calls `use` for each part that a step cuts a piece into.
  template <typename Use>
  void cut(const CompiledCut& step, std::string_view piece, MatchMemory& memory, const Use& use) const;
  /// Encodes a piece from the cut `step` on. `first`: it begins the text.
  void encode_piece(std::size_t step, std::string_view piece, bool first, Work& work) const;
  void encode_bytes(std::string_view piece, Work& work) const;
  void encode_characters(std::string_view piece, Work& work) const;

  TokenizerSpec spec_;
  std::vector<std::string> texts_;
  std::vector<Step> steps_;
  AddedMatcher raw_, normalized_;             // in the text, and in the normalized text
  std::array<std::int32_t, 256> byte_ids_{};  // the tokens of single bytes; -1: none
  bool first_loses_blanks_ = false;
};

}  // namespace tessera::internal
