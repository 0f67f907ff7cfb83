// Text to token ids and back, as GPT-2 does it: byte-level BPE.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// The tokenizer of a GPT-2 family model. Text is cut at special tokens, then into pieces by GPT-2's pattern, and
/// within a piece the pair of neighbours that merges.txt names first, the leftmost of equals, is merged until none is
/// left.
///
/// Ids are those of Hugging Face's `GPT2TokenizerFast`, with one known difference. Pieces depend on what is a letter or
/// a number, and PCRE2 10.42 knows Unicode 14: the 9,392 letters and numbers of Unicode 15 and 16 (Han of CJK extension
/// H, new scripts) are cut as if they were punctuation. Against tokenizers 0.23, with the vocabularies of GPT-2 and of
/// samples/models, that shows in one place only: an English contraction ('s, 'll) right behind such a character.
/// Decoding is not affected.
///
/// A tokenizer does not change once opened: several threads may use one.
class Tokenizer {
 public:
  /// Reads `vocab.json` and `merges.txt` of a Hugging Face model folder. Special tokens are `<|endoftext|>`, if the
  /// vocabulary has it, and those which `added_tokens.json`, `tokenizer_config.json` (`added_tokens_decoder`) and
  /// `special_tokens_map.json` name, where these files exist. Throws Error, naming file and line or key, if a file is
  /// missing or malformed, or asks for what is not done here (`lstrip`, `rstrip`, `single_word`, `add_bos_token`,
  /// `add_prefix_space`).
  static Tokenizer open(const std::filesystem::path& folder);

  /// The ids of `text`; a special token spelled out in it becomes its id. Time O(n log n), memory O(n).
  /// Throws Error with the byte offset if `text` is not UTF-8, and if this build has no PCRE2.
  std::vector<std::int32_t> encode(std::string_view text) const;

  /// The text of `ids`: bytes that together are no UTF-8 become U+FFFD as in `replace_invalid_utf8`. Text that arrives
  /// id by id wants `bytes_of` and a `Utf8Stream` instead. An id without a token gives no text: the vocabulary of a
  /// model may be padded. Throws Error if an id is negative.
  std::string decode(std::span<const std::int32_t> ids) const;

  /// The bytes a token stands for, often a part of a character only; none for an id without a token. They live as long
  /// as the tokenizer. Throws Error if `id` is negative.
  std::string_view bytes_of(std::int32_t id) const;

  /// The token that stands for exactly these bytes, if there is one: `" the"`, `"<|endoftext|>"`.
  std::optional<std::int32_t> id_of(std::string_view bytes) const;

  /// How many tokens there are, special ones included; ids run from 0 to size() - 1.
  std::int32_t size() const { return static_cast<std::int32_t>(tokens_.size()); }

 private:
  struct TextHash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Vocabulary = std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>>;

  struct Special {
    std::string text;
    std::int32_t id;
  };
  struct Merge {
    std::int32_t left, right, result;
  };
  struct Scratch;

  Tokenizer() = default;
  void read_vocabulary(const std::filesystem::path& folder);
  void read_merges(const std::filesystem::path& file);
  void encode_ordinary(std::string_view text, Scratch& scratch, std::vector<std::int32_t>& ids) const;
  void encode_piece(std::string_view piece, Scratch& scratch, std::vector<std::int32_t>& ids) const;

  Vocabulary vocabulary_;            // vocab.json as it is, each byte spelled by a printable character
  std::vector<Special> specials_;    // the longest first
  std::vector<std::string> tokens_;  // the bytes of each id
  std::array<std::int32_t, 256> byte_ids_{};
  std::vector<Merge> merges_;  // by rank
  std::unordered_map<std::uint64_t, std::uint32_t> ranks_;
};

}  // namespace internal
}  // namespace tessera
