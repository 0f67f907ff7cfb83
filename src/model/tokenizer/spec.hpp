// The description of a tokenizer, as data: a reader of files fills a TokenizerSpec, and a Tokenizer is made of it. The
// parts are those of Hugging Face's tokenizers, in the order in which a text passes through them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/tokenizer/merge_table.hpp"
#include "model/tokenizer/vocabulary.hpp"

namespace tessera::internal {

/// A token that is found in the text before anything else happens to it.
struct AddedToken {
  std::string text;
  std::int32_t id = 0;
  bool special = true;       ///< a mark, as <s>, and not a part of a text
  bool normalized = false;   ///< found in the normalized text, in its own normalized form
  bool lstrip = false;       ///< takes the white space before it
  bool rstrip = false;       ///< takes the white space after it
  bool single_word = false;  ///< found only where no letter, digit or underscore touches it
  std::string source{};      ///< the file that has it, in quotes; empty: that of the spec
};

/// Steps of the normalizer; each changes the text between added tokens.
struct UnicodeForm {
  enum Form { nfc, nfd, nfkc, nfkd } form = nfc;  ///< Unicode Standard Annex 15
};
struct Prepend {
  std::string text;  ///< put in front, unless the text is empty
};
struct Replace {
  std::string from, to;
};
using NormalizerStep = std::variant<UnicodeForm, Prepend, Replace>;

/// Where a text is cut at the matches of a pattern, and to which piece these belong.
enum class CutBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// Steps that cut a text into pieces; no token reaches beyond a piece.
struct Cut {
  std::string pattern;   ///< of PCRE2; `\s` means the white space of Unicode
  bool literal = false;  ///< `pattern` is a text, and not a pattern
  CutBehavior behavior = CutBehavior::isolated;
  bool invert = false;  ///< cuts at what does not match
};
struct PrefixSpace {};  ///< puts a blank in front of each piece that does not begin with one
struct Metaspace {
  std::string replacement = "\u2581";                       ///< of each blank
  enum Scheme { never, first, always } prepended = always;  ///< in front of no piece, the text's first, or each
  bool split = true;                                        ///< each replacement begins a piece
};
using CutStep = std::variant<Cut, PrefixSpace, Metaspace>;

/// How a piece becomes the symbols that are merged.
enum class TokenModel {
  byte_level,  ///< each byte is one; files spell it as a printable character (GPT-2)
  characters,  ///< each character is one, if it is a token; see `byte_fallback`, `unknown` (SentencePiece's BPE)
};

/// Steps from the texts of tokens, as files spell them, to the text.
struct ByteLevelText {};  ///< the inverse of the byte alphabet; an added token stays as it is
struct ByteFallback {};   ///< <0x41> is one byte
struct StripToken {       ///< removes up to `start` and `stop` times a character from the ends of each token
  std::string character;
  std::uint32_t start = 0, stop = 0;
};
struct MetaspaceText {
  std::string replacement = "\u2581";
  bool prepended = true;  ///< the first token loses its blanks
};
using DecoderStep = std::variant<ByteLevelText, ByteFallback, Replace, StripToken, MetaspaceText>;

/// The template of a conversation, in Jinja, and where it was found: a message begins with it.
struct ChatTemplate {
  std::string place;
  std::string text;
};

struct TokenizerSpec {
  std::string source{};  ///< the file, in quotes; messages begin with it

  TokenModel model = TokenModel::byte_level;
  Vocabulary vocabulary{};  ///< as files spell tokens: "Ġthe" of a byte-level model, "▁the" of SentencePiece
  bool gaps = false;        ///< may ids be missing between others?
  MergeTable merges{};
  /// By id. Where there are any, there are no `merges`: two tokens whose joint text is a token become that token, the
  /// one with the highest score first, as in SentencePiece.
  std::vector<float> scores{};
  bool ignore_merges = false;  ///< a piece that is a token is that token, even if merges do not lead to it

  /// Some byte-level vocabularies lack bytes that were not in the texts of their training, as control characters;
  /// without this token, such bytes are left out of a text, as Hugging Face's tokenizers do. Characters without it are
  /// an error.
  std::optional<std::int32_t> unknown{};
  bool fuse_unknown = false;  ///< one such token for all of them in a row
  /// A character that is no token becomes the tokens <0x00> to <0xFF> of its bytes.
  bool byte_fallback = false;

  std::vector<AddedToken> added{};
  std::vector<NormalizerStep> normalizer{};
  std::vector<CutStep> cuts{};
  std::vector<std::int32_t> prefix{}, suffix{};  ///< tokens around a whole text, as the beginning-of-text token

  std::vector<DecoderStep> decoder{};
  /// Afterwards this character is removed from the beginning of the text, up to `stripped_count` times.
  std::string stripped{};
  std::uint32_t stripped_count = 0;

  std::optional<std::int32_t> bos{}, eos{};  ///< as the files name them; `prefix` says whether a text gets one
  std::optional<ChatTemplate> chat_template{};
};

/// How a family of byte-level models cuts texts. Names are those of `tokenizer.ggml.pre` in GGUF files.
struct PreTokenizer {
  std::string_view name;
  std::vector<std::string_view> patterns;  ///< cut one after the other, isolated
  bool nfc = false;
  bool ignore_merges = false;
};
/// Null if there is none of this name.
const PreTokenizer* find_pre_tokenizer(std::string_view name);
/// All names, with commas between.
std::string pre_tokenizer_names();

/// GPT-2's pattern.
extern const std::string_view gpt2_pattern;

/// Sets model, normalizer, cuts, ignore_merges and decoder for byte-level BPE.
void use_byte_level(TokenizerSpec& spec, const PreTokenizer& pre);
/// The same for SentencePiece's BPE: blanks become U+2581, also one in front of a text if `space_prefix`; a character
/// that is no token becomes bytes.
void use_sentencepiece(TokenizerSpec& spec, bool space_prefix);

/// Where a file has a merge, for messages: "'merges.txt': line 3".
struct MergePlace {
  std::string_view before;
  std::size_t number;
};
/// Adds a merge of the tokens `left` and `right`, ranked after the earlier ones. Throws Error that begins with `place`
/// if these or their joint text are not in the vocabulary.
void add_merge(TokenizerSpec& spec, std::string_view left, std::string_view right, const MergePlace& place);
/// The same for a line of two tokens with a blank between, as in merges.txt.
void add_merge(TokenizerSpec& spec, std::string_view line, const MergePlace& place);

}  // namespace tessera::internal
