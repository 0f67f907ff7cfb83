#include "tessera/model/tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "model/files/input_file.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/model/utf8.hpp"

#ifdef TESSERA_HAS_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#endif

namespace tessera::internal {
namespace {

using nlohmann::json;
using std::filesystem::path;

constexpr std::string_view end_of_text = "<|endoftext|>";

[[noreturn]] void fail(const path& file, std::string_view what) {
  throw Error(fmt::format("{}: {}", in_quotes(file.native()), what));
}

std::string read_text(const path& file) {
  constexpr std::size_t most = std::size_t{1} << 26;  // several times the size of the largest vocabulary
  if (std::error_code unknown; !std::filesystem::exists(file, unknown) && !unknown) {
    fail(file, "no such file; text needs vocab.json and merges.txt (tokenizer.json is not read)");
  }
  std::string text = read_whole(file, most);
  if (text.starts_with("version https://git-lfs")) fail(file, "it is a Git-LFS pointer; run git lfs pull");
  return text;
}

json parse_json(const path& file, const json::parser_callback_t& callback = nullptr) {
  const std::string text = read_text(file);
  // The parser takes NUL for the end of the text, and would ignore everything after it.
  if (const std::size_t at = text.find('\0'); at != text.npos)
    fail(file, fmt::format("it is not JSON from byte {} on; download it again", at + 1));
  try {
    return json::parse(text, callback);
  } catch (const json::parse_error& error) {
    fail(file, fmt::format("it is not JSON from byte {} on; download it again", error.byte));
  } catch (const json::out_of_range&) {
    fail(file, "it has a number too large to read; download it again");
  }
}

/// Calls `add(text, id)` for each entry of a flat JSON object. No document is built, because this is most of the
/// loading time, and a document would drop duplicate keys.
template <typename Add>
void read_ids(const path& file, const Add& add) {
  std::string text;
  const auto take = [&](int depth, json::parse_event_t event, json& value) {
    using Event = json::parse_event_t;
    if (depth == 0 && (event == Event::object_start || event == Event::object_end)) return true;
    if (depth == 0) fail(file, "it must be one JSON object, {\"token\": id, ...}");
    if (event == Event::key) {
      text = std::move(value.get_ref<std::string&>());
      if (text.empty()) fail(file, "it has an empty token; remove it");
      return false;
    }
    // A number beyond int64 becomes negative here.
    const std::int64_t id = value.is_number_integer() ? value.get<std::int64_t>() : -1;
    if (id < 0 || id > std::numeric_limits<std::int32_t>::max()) {
      fail(file, fmt::format("the id of {} must be an integer from 0 on", in_quotes(text)));
    }
    add(std::move(text), static_cast<std::int32_t>(id));
    return false;
  };
  std::ignore = parse_json(file, take);
}

/// Calls `read(object)` for an optional file, whose content must look like `shape`.
template <typename Read>
void read_optional(const path& file, std::string_view shape, const Read& read) {
  std::error_code absent;
  if (!std::filesystem::exists(file, absent)) return;
  try {
    const json document = parse_json(file);
    if (document.is_object()) return read(document);
  } catch (const json::exception&) {  // a value of the wrong type
  }
  fail(file, fmt::format("it must look like {{{}}}", shape));
}

/// Rejects flags that would change ids.
void refuse_flags(const path& file, const json& object, std::initializer_list<const char*> flags) {
  for (const char* flag : flags) {
    if (object.contains(flag) && object.at(flag) == true) {
      fail(file, fmt::format("{} true is not supported; set it to false", in_quotes(flag)));
    }
  }
}

struct AddedToken {
  std::optional<std::int32_t> id;  // special_tokens_map.json has no ids
  path file;
};
using AddedTokens = std::map<std::string, AddedToken>;

void add(AddedTokens& tokens, const path& file, const std::string& text, std::optional<std::int32_t> id) {
  if (text.empty()) fail(file, "it has an empty token; remove it");
  AddedToken& known = tokens.try_emplace(text, AddedToken{id, file}).first->second;
  if (id && known.id.value_or(*id) != *id)
    fail(file, fmt::format("it gives {} id {}, after {}; keep one", in_quotes(text), *id, *known.id));
  if (id) known.id = id;
}

/// The text of a token, which is a string or an object with a `content`.
std::string content_of(const path& file, const json& token) {
  if (token.is_string()) return token.get<std::string>();
  refuse_flags(file, token, {"lstrip", "rstrip", "single_word"});
  return token.at("content").get<std::string>();
}

AddedTokens read_added_tokens(const path& folder) {
  AddedTokens tokens;
  path file = folder / "added_tokens.json";
  if (std::error_code absent; std::filesystem::exists(file, absent)) {
    read_ids(file, [&](const std::string& text, std::int32_t id) { add(tokens, file, text, id); });
  }
  file = folder / "tokenizer_config.json";
  read_optional(file, R"("added_tokens_decoder": {"0": {"content": "<a>"}, ...})", [&](const json& config) {
    refuse_flags(file, config, {"add_bos_token", "add_prefix_space"});
    if (!config.contains("added_tokens_decoder")) return;
    for (const auto& [key, token] : config.at("added_tokens_decoder").items()) {
      std::int32_t id = -1;
      const char* const end = key.data() + key.size();
      if (std::from_chars(key.data(), end, id).ptr != end || id < 0) {
        fail(file, fmt::format("added_tokens_decoder: {} is not an id", in_quotes(key)));
      }
      add(tokens, file, content_of(file, token), id);
    }
  });
  file = folder / "special_tokens_map.json";
  read_optional(file, R"("eos_token": "<a>", "additional_special_tokens": ["<b>", ...], ...)", [&](const json& roles) {
    const auto take = [&](const json& token) { add(tokens, file, content_of(file, token), std::nullopt); };
    for (const json& role : roles) {
      if (role.is_array()) {
        for (const json& token : role) take(token);
      } else if (!role.is_null()) {
        take(role);
      }
    }
  });
  return tokens;
}

/// GPT-2 writes each byte as a printable character: the byte itself where it is printable in Latin-1, otherwise the
/// next character from U+0100 on.
constexpr std::array<std::uint16_t, 256> byte_letters = [] {
  std::array<std::uint16_t, 256> letters{};
  std::uint16_t next = 0x100;
  for (std::uint16_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
    letters[byte] = printable ? byte : next++;
  }
  return letters;
}();

std::string spell(std::string_view bytes) {
  std::string spelled;
  for (const char byte : bytes) {
    const std::uint16_t letter = byte_letters[static_cast<unsigned char>(byte)];
    if (letter >= 0x80) spelled += static_cast<char>(0xC0 | letter >> 6);
    spelled += static_cast<char>(letter < 0x80 ? letter : 0x80 | (letter & 0x3F));
  }
  return spelled;
}

/// The inverse of `spell`; nullopt if `spelled`, which is UTF-8, has a character that stands for no byte.
std::optional<std::string> unspell(std::string_view spelled) {
  static const auto bytes = [] {
    std::array<std::int16_t, 0x800> inverse;
    inverse.fill(-1);
    for (std::int16_t byte = 0; byte < 256; ++byte) inverse[byte_letters[static_cast<std::size_t>(byte)]] = byte;
    return inverse;
  }();
  std::string result;
  for (std::size_t i = 0; i < spelled.size(); ++i) {
    std::size_t letter = static_cast<unsigned char>(spelled[i]);
    if (letter >= 0xE0) return std::nullopt;
    if (letter >= 0x80) letter = (letter & 0x1F) << 6 | (static_cast<unsigned char>(spelled[++i]) & 0x3F);
    if (bytes[letter] < 0) return std::nullopt;
    result += static_cast<char>(bytes[letter]);
  }
  return result;
}

std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
}

#ifdef TESSERA_HAS_PCRE2
/// GPT-2's pattern, compiled. `\s` is spelled out, because that of PCRE2 also matches U+180E, which is not white space
/// since Unicode 6.3.
class PiecePattern {
 public:
  PiecePattern() {
    constexpr std::string_view pattern =
        R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+)"
        R"(| ?[^\p{Z}\x{09}-\x{0D}\x{85}\p{L}\p{N}]+)"
        R"(|[\p{Z}\x{09}-\x{0D}\x{85}]+(?![^\p{Z}\x{09}-\x{0D}\x{85}])|[\p{Z}\x{09}-\x{0D}\x{85}]+)";
    int error = 0;
    std::size_t at = 0;
    // Anchored here and not when matching, because PCRE2's JIT does not support anchored matching.
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                              PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &error, &at, nullptr));
    if (!code_) throw InternalError(fmt::format("PCRE2 rejects GPT-2's pattern: error {} at {}", error, at));
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);  // without JIT support, PCRE2 interprets the pattern
  }

  /// Calls `use(piece)` for each piece of `text`, which is UTF-8. The pieces cover the text.
  template <typename Use>
  void cut(std::string_view text, const Use& use) const {
    const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(pcre2_match_data_create(1, nullptr),
                                                                                    pcre2_match_data_free);
    if (!match) throw std::bad_alloc();
    for (std::size_t begin = 0; begin < text.size();) {
      const int count = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), begin,
                                    PCRE2_NO_UTF_CHECK, match.get(), nullptr);
      if (count != 1) throw InternalError(fmt::format("PCRE2 returns {} for GPT-2's pattern", count));
      const std::size_t end = pcre2_get_ovector_pointer(match.get())[1];
      use(text.substr(begin, end - begin));
      begin = end;
    }
  }

 private:
  std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code_{nullptr, pcre2_code_free};
};
#endif

}  // namespace

/// The working memory of merging, reused from piece to piece.
struct Tokenizer::Scratch {
  struct Symbol {
    std::int32_t id;  // -1 once it has been merged into its left neighbor
    std::int32_t previous, next;
  };
  std::vector<Symbol> symbols;
  std::vector<std::uint64_t> queue;  // a min-heap of (rank << 32 | position of the left symbol)
};

Tokenizer Tokenizer::open(const path& folder) {
  Tokenizer tokenizer;
  tokenizer.read_vocabulary(folder);
  tokenizer.read_merges(folder / "merges.txt");
  return tokenizer;
}

void Tokenizer::read_vocabulary(const path& folder) {
  const path file = folder / "vocab.json";
  read_ids(file, [&](std::string text, std::int32_t id) {
    const auto [entry, is_new] = vocabulary_.try_emplace(std::move(text), id);
    if (!is_new) fail(file, fmt::format("it names {} twice; keep one", in_quotes(entry->first)));
  });

  AddedTokens added = read_added_tokens(folder);
  if (vocabulary_.contains(end_of_text)) add(added, file, std::string(end_of_text), std::nullopt);
  std::size_t count = vocabulary_.size();
  for (const auto& [text, token] : added) {
    const auto known = vocabulary_.find(text);
    const bool is_new = known == vocabulary_.end();
    if (is_new && !token.id)
      fail(token.file, fmt::format("{} has no id; add it to added_tokens.json", in_quotes(text)));
    if (!is_new && token.id.value_or(known->second) != known->second) {
      fail(token.file, fmt::format("it gives {} id {}, but vocab.json {}; make them agree", in_quotes(text), *token.id,
                                   known->second));
    }
    specials_.push_back({text, is_new ? *token.id : known->second});
    count += is_new;
  }
  std::stable_sort(specials_.begin(), specials_.end(),
                   [](const Special& a, const Special& b) { return a.text.size() > b.text.size(); });

  // There are as many ids as tokens, each less than their number and none twice: so none is missing.
  tokens_.resize(count);
  const auto place = [&](const path& from, std::string_view name, std::string bytes, std::int32_t id) {
    if (static_cast<std::size_t>(id) >= count) {
      fail(from, fmt::format("{} has id {}, but the ids of {} tokens run from 0 to {}", in_quotes(name), id, count,
                             count - 1));
    }
    std::string& token = tokens_[static_cast<std::size_t>(id)];
    if (!token.empty())
      fail(from, fmt::format("{} has id {}, like another token; ids must differ", in_quotes(name), id));
    token = std::move(bytes);
  };
  for (const auto& [text, id] : vocabulary_) {
    std::optional<std::string> bytes = added.contains(text) ? text : unspell(text);
    if (!bytes) {
      fail(file, fmt::format("{} has a character outside GPT-2's byte alphabet; if it is a special token, add it to "
                             "added_tokens.json",
                             in_quotes(text)));
    }
    place(file, text, *std::move(bytes), id);
  }
  for (const auto& [text, id] : specials_) {
    if (!vocabulary_.contains(text)) place(added.at(text).file, text, text, id);
  }

  for (std::size_t byte = 0; byte < 256; ++byte) {
    const char bytes[] = {static_cast<char>(byte)};
    const auto token = vocabulary_.find(spell({bytes, 1}));
    if (token == vocabulary_.end()) {
      fail(file, fmt::format("it has no token {} for byte 0x{:02x}; only byte-level vocabularies are read",
                             in_quotes(spell({bytes, 1})), byte));
    }
    byte_ids_[byte] = token->second;
  }
}

void Tokenizer::read_merges(const path& file) {
  const std::string text = read_text(file);
  std::string_view rest = text;
  rest = rest.substr(0, rest.find_last_not_of("\r\n") + 1);
  ranks_.reserve(vocabulary_.size());
  for (int number = 1; !rest.empty(); ++number) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (number == 1 && line.starts_with("#version")) continue;

    const std::size_t space = line.find(' ');
    const std::string_view left = line.substr(0, space);
    const std::string_view right = space == line.npos ? "" : line.substr(space + 1);
    if (left.empty() || right.empty() || right.find(' ') != right.npos) {
      fail(file, fmt::format("line {}: {} is not two tokens with a space between", number, in_quotes(line)));
    }
    const auto id = [&](std::string_view token) {
      const auto known = vocabulary_.find(token);
      if (known == vocabulary_.end()) {
        fail(file, fmt::format("line {}: {} is not in vocab.json; both files must belong to one model", number,
                               in_quotes(token)));
      }
      return known->second;
    };
    const Merge merge{id(left), id(right), id(std::string(left).append(right))};
    if (!ranks_.try_emplace(pair_of(merge.left, merge.right), merges_.size()).second) {
      fail(file, fmt::format("line {}: {} occurs twice; keep the first", number, in_quotes(line)));
    }
    merges_.push_back(merge);
  }
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  if (text.size() > std::numeric_limits<std::int32_t>::max()) throw Error("the text is longer than 2 GiB; split it");
  if (const auto at = find_invalid_utf8(text)) {
    throw Error(fmt::format("the text is not UTF-8: byte 0x{:02x} at offset {}; convert it, for example with iconv",
                            static_cast<unsigned char>(text[*at]), *at));
  }
  std::string starts;
  for (const Special& special : specials_) starts += special.text.front();

  std::vector<std::int32_t> ids;
  Scratch scratch;
  std::size_t begin = 0;  // of the ordinary text before a special token
  for (std::size_t at = 0; (at = text.find_first_of(starts, at)) != text.npos;) {
    const auto special = std::find_if(specials_.begin(), specials_.end(),
                                      [&](const Special& s) { return text.substr(at).starts_with(s.text); });
    if (special == specials_.end()) {
      ++at;
      continue;
    }
    encode_ordinary(text.substr(begin, at - begin), scratch, ids);
    ids.push_back(special->id);
    begin = at += special->text.size();
  }
  encode_ordinary(text.substr(begin), scratch, ids);
  return ids;
}

#ifdef TESSERA_HAS_PCRE2
void Tokenizer::encode_ordinary(std::string_view text, Scratch& scratch, std::vector<std::int32_t>& ids) const {
  static const PiecePattern& pattern = *new PiecePattern;
  pattern.cut(text, [&](std::string_view piece) { encode_piece(piece, scratch, ids); });
}
#else
void Tokenizer::encode_ordinary(std::string_view, Scratch&, std::vector<std::int32_t>&) const {
  throw Error("this build has no PCRE2, so it cannot tokenize text; install libpcre2-dev and build again, or pass ids");
}
#endif

void Tokenizer::encode_piece(std::string_view piece, Scratch& scratch, std::vector<std::int32_t>& ids) const {
  auto& [symbols, queue] = scratch;
  const auto count = static_cast<std::int32_t>(piece.size());
  const auto symbol = [&](std::int32_t at) -> Scratch::Symbol& { return symbols[static_cast<std::size_t>(at)]; };
  symbols.clear();
  for (std::int32_t at = 0; at < count; ++at) {
    const auto byte = static_cast<unsigned char>(piece[static_cast<std::size_t>(at)]);
    symbols.push_back({byte_ids_[byte], at - 1, at + 1});
  }

  queue.clear();
  const auto enqueue = [&](std::int32_t at) {
    if (at < 0 || symbol(at).next == count) return false;
    const auto rank = ranks_.find(pair_of(symbol(at).id, symbol(symbol(at).next).id));
    if (rank == ranks_.end()) return false;
    queue.push_back(static_cast<std::uint64_t>(rank->second) << 32 | static_cast<std::uint32_t>(at));
    return true;
  };
  for (std::int32_t at = 0; at < count; ++at) enqueue(at);
  std::make_heap(queue.begin(), queue.end(), std::greater<>());

  while (!queue.empty()) {
    const Merge& merge = merges_[queue.front() >> 32];
    const auto at = static_cast<std::int32_t>(queue.front() & 0xFFFFFFFF);
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    queue.pop_back();

    // An entry is stale if either symbol has been merged since.
    const std::int32_t next = symbol(at).next;
    if (symbol(at).id != merge.left || next == count || symbol(next).id != merge.right) continue;
    symbol(at).id = merge.result;
    symbol(at).next = symbol(next).next;
    symbol(next).id = -1;
    if (symbol(at).next != count) symbol(symbol(at).next).previous = at;
    for (const std::int32_t changed : {symbol(at).previous, at}) {
      if (enqueue(changed)) std::push_heap(queue.begin(), queue.end(), std::greater<>());
    }
  }
  for (std::int32_t at = 0; at != count; at = symbol(at).next) ids.push_back(symbol(at).id);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string bytes;
  for (const std::int32_t id : ids) bytes += bytes_of(id);
  return replace_invalid_utf8(bytes);
}

std::string_view Tokenizer::bytes_of(std::int32_t id) const {
  if (id < 0) throw Error(fmt::format("token id {} is negative; ids begin at 0", id));
  return id < size() ? std::string_view(tokens_[static_cast<std::size_t>(id)]) : std::string_view();
}

std::optional<std::int32_t> Tokenizer::id_of(std::string_view bytes) const {
  for (const Special& special : specials_) {
    if (special.text == bytes) return special.id;
  }
  const auto known = vocabulary_.find(spell(bytes));
  if (known == vocabulary_.end()) return std::nullopt;
  return known->second;
}

}  // namespace tessera::internal
