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

/// The tokenizer of a GPT-2 family model. Text is split at special tokens, then into pieces by GPT-2's pattern. Within
/// a piece, the pair of neighbors with the lowest rank in merges.txt, the leftmost among equals, is merged until no
/// pair can be merged.
///
/// Ids are those of Hugging Face's `GPT2TokenizerFast`, with one known difference. Pieces depend on which characters
/// are letters or numbers, and PCRE2 10.42 implements Unicode 14: the 9,392 letters and numbers of Unicode 15 and 16
/// (Han of CJK extension H, new scripts) are treated as punctuation. Compared with tokenizers 0.23, with the
/// vocabularies of GPT-2 and of samples/models, this shows in one place only: an English contraction ('s, 'll) directly
/// after such a character. Decoding is not affected.
///
/// A tokenizer does not change once opened: several threads may use one.
class Tokenizer {
 public:
  /// Reads `vocab.json` and `merges.txt` of a Hugging Face model folder. Special tokens are `<
  /// endoftext
  /// >`, if the vocabulary has it, and those in `added_tokens.json`, `tokenizer_config.json` (`added_tokens_decoder`)
  /// and `special_tokens_map.json`, where these files exist. Throws Error that names file and line or key if a file is
  /// missing or malformed, or if it uses a feature that is not supported (`lstrip`, `rstrip`, `single_word`,
  /// `add_bos_token`, `add_prefix_space`).
  static Tokenizer open(const std::filesystem::path& folder);

  /// The ids of `text`; a special token spelled out in it becomes its id. Time O(n log n), memory O(n). Throws Error
  /// with the byte offset if `text` is not UTF-8, and Error if this build has no PCRE2.
  std::vector<std::int32_t> encode(std::string_view text) const;

  /// The text of `ids`. Invalid UTF-8 becomes U+FFFD as in `replace_invalid_utf8`. For text that arrives id by id, use
  /// `bytes_of` and a `Utf8Stream`. An id without a token yields no text, because the vocabulary of a model may be
  /// padded. Throws Error if an id is negative.
  std::string decode(std::span<const std::int32_t> ids) const;

  /// The bytes of a token, often only part of a character; empty for an id without a token. They live as long as the
  /// tokenizer. Throws Error if `id` is negative.
  std::string_view bytes_of(std::int32_t id) const;

  /// The token of exactly these bytes, if it exists: `" the"`, `"<
  /// endoftext
  /// >"`.
  std::optional<std::int32_t> id_of(std::string_view bytes) const;

  /// The number of tokens, including special ones; ids run from 0 to size() - 1.
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

  Vocabulary vocabulary_;            // vocab.json unchanged, with each byte spelled as a printable character
  std::vector<Special> specials_;    // longest first
  std::vector<std::string> tokens_;  // the bytes of each id
  std::array<std::int32_t, 256> byte_ids_{};
  std::vector<Merge> merges_;  // by rank
  std::unordered_map<std::uint64_t, std::uint32_t> ranks_;
};

}  // namespace internal
}  // namespace tessera
