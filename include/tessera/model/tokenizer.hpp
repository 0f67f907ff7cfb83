// Text to token ids and back: byte-pair encoding of bytes, as in GPT-2, and of characters, as in SentencePiece.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

class TokenizerEngine;
struct TokenizerSpec;

/// Where a text stands.
enum class TextPlace {
  whole,         ///< on its own: it gets the tokens that the model expects around a text, such as <s>
  beginning,     ///< as a prompt: what follows is to be generated, so it gets only those in front
  inner,         ///< also at the beginning, but these tokens are spelled out in it, or not wanted
  continuation,  ///< after another text: in front of it comes neither a token nor a blank
};

/// The tokenizer of a model. Added tokens are found first; the text between them is normalized and cut into pieces by
/// the patterns of the model's family. Within a piece, the pair of neighbors whose merge has the lowest rank, the
/// leftmost among equals, is merged until no pair can be merged.
///
/// Ids are those of Hugging Face's `tokenizers`, with one known difference. Pieces depend on which characters are
/// letters or numbers, and PCRE2 10.42 implements Unicode 14: the 9,392 letters and numbers of Unicode 15 and 16 (Han
/// of CJK extension H, new scripts) are treated as punctuation. Decoding is not affected.
///
/// A tokenizer does not change once opened: several threads may use one. A copy is cheap, and shares all data.
class Tokenizer {
 public:
  /// Reads the tokenizer of a GGUF file (its keys tokenizer.ggml.*), or of a Hugging Face model folder: `tokenizer.json` if there is one, otherwise GPT-2's
  /// `vocab.json` and `merges.txt`. A `tokenizer.json` must be one of byte-pair encoding, with the parts that GPT-2,
  /// Llama, Mistral, Qwen, Gemma and SmolLM have. Beside GPT-2's files, special tokens are "<|endoftext|>", if the
  /// vocabulary has it, and those in `added_tokens.json`, `tokenizer_config.json` (`added_tokens_decoder`) and
  /// `special_tokens_map.json`, where these files exist. Throws Error that names file and line or key if a file is
  /// missing or malformed, or if it uses a feature that is not supported.
  static Tokenizer open(const std::filesystem::path& folder);

  /// Throws Error that begins with the spec's `source` if its parts do not fit together.
  explicit Tokenizer(TokenizerSpec spec);

  /// The ids of `text`; a special token spelled out in it becomes its id. Time O(n log n), memory O(n). Throws Error
  /// with the byte offset if `text` is not UTF-8, and Error if this build lacks PCRE2, or utf8proc where the tokenizer
  /// normalizes characters, or if a character has no token. Bytes for which a byte-level vocabulary has no token, as
  /// SmolLM2's has none for some control characters, are left out.
  std::vector<std::int32_t> encode(std::string_view text, TextPlace place = TextPlace::whole) const;

  /// The text of `ids`, from the beginning of a text on: see TokenBytes. Invalid UTF-8 becomes U+FFFD as in
  /// `replace_invalid_utf8`. For text that arrives id by id, use `TokenBytes` and a `Utf8Stream`. An id without a token
  /// yields no text, because the vocabulary of a model may be padded. Throws Error if an id is negative.
  std::string decode(std::span<const std::int32_t> ids) const;

  /// The bytes of a token, often only part of a character; empty for an id without a token. A token of SentencePiece
  /// that begins a word has a blank in front. They live as long as the tokenizer. Throws Error if `id` is negative.
  std::string_view bytes_of(std::int32_t id) const;

  /// The token of exactly these bytes, if it exists: `" the"`, `"<|endoftext|>"`.
  std::optional<std::int32_t> id_of(std::string_view bytes) const;

  /// One more than the largest id; without gaps, the number of tokens, including special ones.
  std::int32_t size() const;

  /// The description that it was made of: an internal type.
  const TokenizerSpec& spec() const;

 private:
  friend class TokenBytes;
  std::shared_ptr<const TokenizerEngine> engine_;
};

/// The bytes of the tokens of a text, one token after the other: `bytes_of`, without what `encode` puts at the
/// beginning of a text (a token as <s>, and a blank in front of the first word).
class TokenBytes {
 public:
  /// `continuation`: the tokens are not those at the beginning of a text.
  explicit TokenBytes(Tokenizer tokenizer, TextPlace place = TextPlace::whole);

  /// The next token is the first of a text.
  void begin();
  /// The bytes of the next token. They live until the next call. Throws Error if `id` is negative.
  std::string_view push(std::int32_t id);

 private:
  Tokenizer tokenizer_;
  std::size_t prefix_ = 0;    // tokens of the prefix that were seen
  std::uint32_t strips_ = 0;  // characters that may still be removed
  bool loses_blanks_ = false;
  std::string first_;
};

}  // namespace gnu::visibility("default")]]internal
}  // namespace tessera
