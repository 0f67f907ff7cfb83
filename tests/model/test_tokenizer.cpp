// Text, tokens and bytes: the tokenizer against Hugging Face's and against a slow one written here, UTF-8 against its
// definition, and invalid files and texts.
#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <thread>

#include "support/catch.hpp"
#include "support/share.hpp"
#include "support/support.hpp"
#include "tessera/model/tokenizer.hpp"
#include "tessera/model/utf8.hpp"

namespace test_tokenizer {

using namespace tessera::internal;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

using Ids = std::vector<std::int32_t>;

const fs::path root = TESSERA_SOURCE_DIR;
const fs::path storyteller_folder = root / "samples/models/storyteller-6m";
const fs::path gpt2_folder = root / "../shared/data/gpt2-tokenizer";

const Tokenizer& storyteller() {
  static const Tokenizer tokenizer = Tokenizer::open(storyteller_folder);
  return tokenizer;
}

json read_json(const fs::path& file) { return json::parse(read_text(file)); }

/// Whether this build can encode; a test that cannot run reports that.
bool can_encode() {
  const std::string error = error_of([] { storyteller().encode(""); });
  if (error == "(no error)") return true;
  REQUIRE(says(error, {"this build has no PCRE2"}));
  WARN("skipped: " << error);
  return false;
}

std::string utf8(char32_t c) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xC0 | c >> 6), tail(0)};
  if (c < 0x10000) return {static_cast<char>(0xE0 | c >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | c >> 18), tail(12), tail(6), tail(0)};
}

bool is_surrogate(char32_t c) { return c >= 0xD800 && c < 0xE000; }

/// Text with many characters of one, two, three and four bytes, white space and apostrophes.
std::string random_text(std::mt19937& random, std::size_t most) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  static constexpr std::string_view common[] = {" ",   "  ",   "\n", "\t", "'", "'s", "'ll",
                                                "the", " and", "e",  "1",  ".", "<|"};
  std::string text;
  for (std::size_t n = below(most + 1); n > 0; --n) {
    const char32_t limits[] = {0x80, 0x250, 0x3100, 0x110000};
    const std::size_t kind = below(6);
    const auto c = static_cast<char32_t>(below(limits[kind % 4]));
    text += kind > 3 || is_surrogate(c) ? std::string(common[below(std::size(common))]) : utf8(c);
  }
  return text;
}

// ---- UTF-8 by its definition: characters are found by enumerating all of them.

/// Each proper prefix of the UTF-8 form of some character.
const std::set<std::string>& beginnings() {
  static const std::set<std::string> all = [] {
    std::set<std::string> set;
    std::string last;
    for (char32_t c = 0x80; c < 0x110000; ++c) {
      const std::string bytes = utf8(c);
      const std::string begin = bytes.substr(0, bytes.size() - 1);
      if (is_surrogate(c) || begin == last) continue;
      last = begin;
      for (std::size_t n = 1; n < bytes.size(); ++n) set.insert(bytes.substr(0, n));
    }
    return set;
  }();
  return all;
}

/// Length of the character at the start of `bytes`, 0 if there is none.
std::size_t character_length(std::string_view bytes) {
  if (static_cast<unsigned char>(bytes[0]) < 0x80) return 1;
  for (std::size_t n = 2; n <= 4 && n <= bytes.size(); ++n) {
    const bool last = (static_cast<unsigned char>(bytes[n - 1]) & 0xC0) == 0x80;
    if (!beginnings().contains(std::string(bytes.substr(0, n - 1))) || !last) return 0;
    if (!beginnings().contains(std::string(bytes.substr(0, n)))) {
      // A complete character, unless the second byte is out of bounds: then re-encoding gives other bytes.
      char32_t c = static_cast<unsigned char>(bytes[0]) & (0x7F >> n);
      for (std::size_t i = 1; i < n; ++i) c = c << 6 | (static_cast<unsigned char>(bytes[i]) & 0x3F);
      return c < 0x110000 && !is_surrogate(c) && utf8(c) == bytes.substr(0, n) ? n : 0;
    }
  }
  return 0;
}

struct Decoded {
  std::string text;
  std::optional<std::size_t> first_invalid;
};

Decoded decode_by_definition(std::string_view bytes) {
  Decoded result;
  for (std::size_t at = 0; at < bytes.size();) {
    std::size_t n = character_length(bytes.substr(at));
    if (n > 0) {
      result.text += bytes.substr(at, n);
    } else {
      if (!result.first_invalid) result.first_invalid = at;
      n = 1;
      while (at + n < bytes.size() && beginnings().contains(std::string(bytes.substr(at, n + 1)))) ++n;
      result.text += "\uFFFD";
    }
    at += n;
  }
  return result;
}

/// `bytes` through a stream in parts that end at `cuts`; no part may end within a character.
std::string streamed(std::string_view bytes, const std::vector<std::size_t>& cuts, bool& whole) {
  Utf8Stream stream;
  std::string text;
  std::size_t begin = 0;
  const auto take = [&](const std::string& part) {
    whole = whole && !decode_by_definition(part).first_invalid;
    text += part;
  };
  for (const std::size_t end : cuts) {
    take(stream.push(bytes.substr(begin, end - begin)));
    begin = end;
  }
  take(stream.push(bytes.substr(begin)));
  take(stream.finish());
  return text;
}

// ---- A slow tokenizer: strings, the pattern by hand for ASCII, one merge at a time.

/// GPT-2's `bytes_to_unicode`.
std::string spelled(unsigned char byte) {
  static const std::array<std::string, 256> table = [] {
    std::array<std::string, 256> letters;
    char32_t next = 256;
    for (char32_t b = 0; b < 256; ++b) {
      const bool kept = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
      letters[b] = utf8(kept ? b : next++);
    }
    return letters;
  }();
  return table[byte];
}

std::vector<std::string> ascii_pieces(std::string_view text) {
  const auto kind = [&](std::size_t i) {
    const char c = text[i];
    if (c == ' ' || (c >= '\t' && c <= '\r')) return 's';
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return 'L';
    return c >= '0' && c <= '9' ? 'N' : 'o';
  };
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = 0;
    for (const char* word : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
      if (text.substr(at).starts_with(word)) end = at + std::string_view(word).size();
    }
    const std::size_t first = text[at] == ' ' && at + 1 < text.size() ? at + 1 : at;
    if (end == 0 && kind(first) != 's') {
      end = first + 1;
      while (end < text.size() && kind(end) == kind(first)) ++end;
    }
    if (end == 0) {
      end = at + 1;
      while (end < text.size() && kind(end) == 's') ++end;
      if (end < text.size() && end - at > 1) --end;
    }
    pieces.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return pieces;
}

class SlowTokenizer {
 public:
  explicit SlowTokenizer(const fs::path& folder) {
    ids_ = read_json(folder / "vocab.json").get<std::map<std::string, std::int32_t>>();
    std::istringstream lines(read_text(folder / "merges.txt"));
    std::string left, right;
    if (lines.peek() == '#') std::getline(lines, left);
    for (std::size_t rank = 0; lines >> left >> right; ++rank) ranks_[{left, right}] = rank;
  }

  Ids encode_piece(std::string_view piece) const {
    std::vector<std::string> symbols;
    for (const char byte : piece) symbols.push_back(spelled(static_cast<unsigned char>(byte)));
    for (;;) {
      std::size_t best = ranks_.size(), place = 0;
      for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
        const auto found = ranks_.find({symbols[i], symbols[i + 1]});
        if (found != ranks_.end() && found->second < best) best = found->second, place = i;
      }
      if (best == ranks_.size()) break;
      symbols[place] += symbols[place + 1];
      symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(place) + 1);
    }
    Ids ids;
    for (const std::string& symbol : symbols) ids.push_back(ids_.at(symbol));
    return ids;
  }

  Ids encode_ascii(std::string_view text) const {
    Ids ids;
    for (const std::string& piece : ascii_pieces(text)) {
      const Ids part = encode_piece(piece);
      ids.insert(ids.end(), part.begin(), part.end());
    }
    return ids;
  }

 private:
  std::map<std::string, std::int32_t> ids_;
  std::map<std::pair<std::string, std::string>, std::size_t> ranks_;
};

// ---- A small tokenizer whose files a test may corrupt.

class Folder {
 public:
  /// The 256 bytes in order, "ab", "abc" and <|endoftext|>.
  Folder() {
    for (int byte = 0; byte < 256; ++byte) add(spelled(static_cast<unsigned char>(byte)));
    add("ab");
    add("abc");
    add("<|endoftext|>");
    write("merges.txt", "#version: 0.2\na b\nab c\n");
  }

  void add(const std::string& token) { vocabulary_.emplace_back(token, std::to_string(vocabulary_.size())); }
  /// The value of a token's id as JSON text, which need not be a number.
  std::string& id(const std::string& token) {
    for (auto& [text, value] : vocabulary_) {
      if (text == token) return value;
    }
    throw std::logic_error(token);
  }
  void write(const std::string& name, const std::string& text) { write_text(folder_ / name, text); }
  fs::path operator/(const std::string& name) const { return folder_ / name; }

  Tokenizer open() {
    if (!fs::exists(folder_ / "vocab.json")) {
      std::string text;
      for (const auto& [token, value] : vocabulary_)
        text += (text.empty() ? "{" : ",\n") + json(token).dump() + ": " + value;
      write("vocab.json", text + "}");
    }
    return Tokenizer::open(folder_.path());
  }
  /// The error: one line that names the file in this folder.
  std::string refusal(const std::string& file) {
    const std::string text = error_of([&] { open(); });
    INFO(text);
    CHECK(text.find((folder_ / file).string()) != text.npos);
    CHECK(text.find('\n') == text.npos);
    return text;
  }
  void check_refused(const std::string& file, std::initializer_list<std::string_view> parts) {
    const std::string text = refusal(file);
    INFO(text);
    CHECK(says(text, parts));
  }

 private:
  TempDir folder_;
  std::vector<std::pair<std::string, std::string>> vocabulary_;
};

double seconds_of(const std::function<void()>& action) {
  const auto begin = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE("invalid UTF-8 is found and replaced as Python does", "[model]") {
  struct Case {
    std::string_view kind;
    std::string bytes;
    std::optional<std::size_t> at;
    std::string text;  // bytes.decode(errors="replace")
  };
  const std::string r = "\uFFFD";
  const std::string nul(1, '\0');
  const std::vector<Case> cases = {
      {"nothing", "", {}, ""},
      {"all lengths", "a\u00e9\u20ac\U0001f600" + nul, {}, "a\u00e9\u20ac\U0001f600" + nul},
      {"the last of each length", "\x7f\u07ff\uffff\U0010ffff", {}, "\x7f\u07ff\uffff\U0010ffff"},
      {"around the surrogates", "\ud7ff\ue000", {}, "\ud7ff\ue000"},
      {"a lone tail byte",
       "a\x80"
       "b",
       1, "a" + r + "b"},
      {"overlong, 2 bytes", "\xc0\x80", 0, r + r},
      {"overlong, 2 bytes", "\xc1\xbf", 0, r + r},
      {"overlong, 3 bytes", "\xe0\x80\x80", 0, r + r + r},
      {"overlong, 3 bytes", "\xe0\x9f\xbf", 0, r + r + r},
      {"overlong, 4 bytes", "\xf0\x80\x80\x80", 0, r + r + r + r},
      {"high surrogate", "x\xed\xa0\x80", 1, "x" + r + r + r},
      {"low surrogate", "\xed\xbf\xbf", 0, r + r + r},
      {"above U+10FFFF", "\xf4\x90\x80\x80", 0, r + r + r + r},
      {"far above", "\xf5\x80\x80\x80", 0, r + r + r + r},
      {"bytes never used", "\xfe\xff", 0, r + r},
      {"cut off, 2 bytes", "a\xc2", 1, "a" + r},
      {"cut off, 3 bytes", "\xe2\x82", 0, r},
      {"cut off, 4 bytes", "\xf0\x9f\x98", 0, r},
      {"cut off by a letter",
       "\xe2\x82"
       "A",
       0, r + "A"},
      {"cut off by a character", "\xf0\x9f\x98\U0001f600", 0, r + "\U0001f600"},
      {"beginnings in a row", "\xe1\x80\xe2\xf0\x91\x92\xf1\xbf", 0, r + r + r + r},
  };
  for (const Case& c : cases) {
    INFO(c.kind);
    CHECK(find_invalid_utf8(c.bytes) == c.at);
    CHECK(replace_invalid_utf8(c.bytes) == c.text);
    const Decoded defined = decode_by_definition(c.bytes);
    CHECK(defined.first_invalid == c.at);
    CHECK(defined.text == c.text);
    const std::string error = error_of([&] { storyteller().encode(c.bytes); });
    if (c.at) CHECK(says(error, {"UTF-8", "offset " + std::to_string(*c.at)}));
  }
}

TEST_CASE("UTF-8 follows its definition", "[model]") {
  SECTION("every character is valid, and invalid without its last byte") {
    std::size_t wrong = 0;
    for (char32_t c = 0; c < 0x110000; ++c) {
      const std::string bytes = utf8(c);
      const bool valid = !is_surrogate(c);
      wrong += find_invalid_utf8(bytes).has_value() == valid;
      wrong += (replace_invalid_utf8(bytes) == bytes) != valid;
      wrong += bytes.size() > 1 && find_invalid_utf8(bytes.substr(0, bytes.size() - 1)) != 0u;
    }
    CHECK(wrong == 0);
  }
  SECTION("all short strings of boundary bytes, whole and byte by byte") {
    const std::string edges =
        "\x41\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xdf\xe0\xe1\xec\xed\xee\xef\xf0\xf1\xf3\xf4\xf5\xff";
    std::mt19937 random(1);
    std::size_t wrong = 0, count = 0;
    bool whole = true;
    const auto check = [&](const std::string& bytes) {
      const Decoded defined = decode_by_definition(bytes);
      std::vector<std::size_t> every;
      for (std::size_t i = 1; i < bytes.size(); ++i) every.push_back(i);
      wrong += find_invalid_utf8(bytes) != defined.first_invalid || replace_invalid_utf8(bytes) != defined.text ||
               streamed(bytes, every, whole) != defined.text;
      ++count;
    };
    for (const char a : edges) {
      for (const char b : edges) {
        check({a, b});
        for (const char c : edges) check({a, b, c});
      }
    }
    for (int n = 0; n < 20000; ++n) {
      std::string bytes;
      for (std::size_t length = 4 + random() % 5; length > 0; --length) bytes += edges[random() % edges.size()];
      check(bytes);
    }
    CHECK(count == 24 * 24 + 24 * 24 * 24 + 20000);
    CHECK(wrong == 0);
    CHECK(whole);
  }
}

TEST_CASE("a stream of bytes gives the same text however it is split", "[model]") {
  const std::string bytes = "a\u00e9\u20ac\U0001f600 \xf0\x9f\x98 \xe2\x82z\xed\xa0\x80\xff\u20ac\xf0\x9f";
  const std::string text = replace_invalid_utf8(bytes);
  bool whole = true;
  for (std::size_t a = 0; a <= bytes.size(); ++a) {
    for (std::size_t b = a; b <= bytes.size(); ++b) CHECK(streamed(bytes, {a, b}, whole) == text);
  }
  CHECK(whole);

  Utf8Stream stream;
  SECTION("an incomplete character waits for its end, or for a byte that makes it invalid") {
    CHECK(stream.push("ab\xf0\x9f").empty() == false);
    CHECK(stream.push("\x98") == "");
    CHECK(stream.push("") == "");
    CHECK(stream.push("\x80!") == "\U0001f600!");
    CHECK(stream.push("\xe2\x82") == "");
    CHECK(stream.push("A") ==
          "\uFFFD"
          "A");
  }
  SECTION("bytes that cannot become valid do not wait") {
    CHECK(stream.push("\xff") == "\uFFFD");
    CHECK(stream.push("\x80") == "\uFFFD");
    CHECK(stream.push("\xed\xa0") == "\uFFFD\uFFFD");
    CHECK(stream.push("\xf4\x90") == "\uFFFD\uFFFD");
  }
  SECTION("the end stops the wait, and the stream starts anew") {
    CHECK(stream.finish() == "");
    CHECK(stream.push("\xf0\x9f\x98") == "");
    CHECK(stream.finish() == "\uFFFD");
    CHECK(stream.finish() == "");
    CHECK(stream.push("\x80") == "\uFFFD");
  }
}

TEST_CASE("the storyteller's tokens are those of Hugging Face's tokenizers", "[model]") {
  if (!can_encode()) return;
  const Tokenizer& tokenizer = storyteller();
  SECTION("texts of many kinds") {
    const json golden = read_json(root / "tests/data/storyteller-tokenizer.json");
    REQUIRE(golden["cases"].size() > 200);
    for (const json& c : golden["cases"]) {
      const auto text = c["text"].get<std::string>();
      INFO(json(text).dump());
      CHECK(tokenizer.encode(text) == c["ids"].get<Ids>());
      CHECK(tokenizer.decode(c["ids"].get<Ids>()) == text);
    }
  }
  SECTION("every code point of the planes in use, alone and between letters, spaces and digits") {
    // One hash of all ids. It does not depend on PCRE2's version of Unicode: a letter that is too new for it is a piece
    // of its own, but its bytes would not merge further in a longer piece either.
    std::uint64_t hash = 0xcbf29ce484222325;
    const auto add = [&](char32_t c) {
      const std::string s = utf8(c);
      if (is_surrogate(c)) return;
      for (const std::int32_t id : tokenizer.encode(s + " a" + s + "b " + s + "1")) {
        hash = (hash ^ static_cast<std::uint64_t>(id)) * 0x100000001b3;
      }
    };
    for (char32_t c = 0; c < 0x40000; ++c) add(c);
    for (char32_t c = 0xE0000; c < 0xE1000; ++c) add(c);
    for (char32_t c = 0x10FFFD; c < 0x110000; ++c) add(c);
    const json golden = read_json(root / "tests/data/storyteller-tokenizer.json");
    CHECK(hash == std::stoull(golden["sweep_fnv1a64"].get<std::string>(), nullptr, 16));
  }
  SECTION("the prompts and stories of the golden file") {
    const json golden = read_json(root / "tests/data/storyteller-golden.json");
    REQUIRE(!golden["cases"].empty());
    for (const json& c : golden["cases"]) {
      CHECK(tokenizer.encode(c["prompt"].get<std::string>()) == c["prompt_ids"].get<Ids>());
      const auto ids = c["greedy_ids"].get<Ids>();
      CHECK(tokenizer.decode(ids) == c["greedy_text"].get<std::string>());
      Utf8Stream stream;
      std::string text;
      for (const std::int32_t id : ids) text += stream.push(tokenizer.bytes_of(id));
      CHECK(text + stream.finish() == c["greedy_text"].get<std::string>());
    }
  }
}

TEST_CASE("GPT-2's tokens are those of Hugging Face's tokenizers", "[gpt2_vocabulary]") {
  if (!fs::exists(gpt2_folder / "vocab.json")) {
    WARN("skipped: GPT-2's vocabulary is not at " << gpt2_folder.string());
    return;
  }
  if (!can_encode()) return;
  const Tokenizer tokenizer = Tokenizer::open(gpt2_folder);
  CHECK(tokenizer.size() == 50257);
  CHECK(tokenizer.id_of("<|endoftext|>") == 50256);
  const json cases = read_json(root / "tests/data/tokenizer-shared.json");
  REQUIRE(!cases.empty());
  for (const json& c : cases) {
    const auto text = c["text"].get<std::string>();
    INFO(json(text).dump());
    CHECK(tokenizer.encode(text) == c["ids"].get<Ids>());
    CHECK(tokenizer.decode(c["ids"].get<Ids>()) == c["decoded"].get<std::string>());
  }
}

TEST_CASE("every token has its bytes, and the bytes their token", "[model]") {
  const Tokenizer& tokenizer = storyteller();
  REQUIRE(tokenizer.size() == 4096);
  std::size_t wrong = 0;
  for (std::int32_t id = 0; id < tokenizer.size(); ++id) wrong += tokenizer.id_of(tokenizer.bytes_of(id)) != id;
  CHECK(wrong == 0);
  CHECK(tokenizer.id_of("<|endoftext|>") == 0);
  CHECK(tokenizer.bytes_of(0) == "<|endoftext|>");
  CHECK(tokenizer.bytes_of(1) == "!");
  CHECK(tokenizer.bytes_of(2916) == "Once");
  CHECK(tokenizer.bytes_of(580) == " upon");
  CHECK(tokenizer.id_of(" upon") == 580);
  CHECK(tokenizer.id_of("\xff").has_value());
  CHECK(!tokenizer.id_of("\u0120upon"));  // the file's spelling is not the token's text
  CHECK(!tokenizer.id_of(""));
  CHECK(!tokenizer.id_of("no such token"));

  for (const std::int32_t id : {-1, std::numeric_limits<std::int32_t>::min()}) {
    CHECK(says(error_of([&] { tokenizer.bytes_of(id); }), {"token id " + std::to_string(id), "negative"}));
    CHECK(says(error_of([&] { tokenizer.decode(std::array{1, id}); }), {"token id " + std::to_string(id), "negative"}));
  }
  CHECK(tokenizer.decode({}) == "");
  // Half a character is replaced, not dropped; together the halves are one.
  const Ids halves = {*tokenizer.id_of("\xf0"), *tokenizer.id_of("\x9f"), *tokenizer.id_of("\x98"),
                      *tokenizer.id_of("\x80")};
  CHECK(tokenizer.decode(std::span(halves).first(3)) == "\uFFFD");
  CHECK(tokenizer.decode(std::span(halves).last(1)) == "\uFFFD");
  CHECK(tokenizer.decode(halves) == "\U0001f600");
}

TEST_CASE("an id without a token gives no text", "[model]") {
  const Tokenizer& tokenizer = storyteller();
  for (const std::int32_t id : {tokenizer.size(), tokenizer.size() + 47, std::numeric_limits<std::int32_t>::max()}) {
    CHECK(tokenizer.bytes_of(id).empty());
    CHECK(tokenizer.decode(std::array{id}) == "");
    CHECK(tokenizer.decode(std::array{2916, id, 580}) == "Once upon");
    // Such an id within a character does not end it.
    const Ids character = {*tokenizer.id_of("\xc3"), id, *tokenizer.id_of("\xa4")};
    CHECK(tokenizer.decode(character) == "\u00e4");
    Utf8Stream stream;
    std::string text;
    for (const std::int32_t one : character) text += stream.push(tokenizer.bytes_of(one));
    CHECK(text + stream.finish() == "\u00e4");
  }
}

TEST_CASE("decoding restores encoded text", "[model]") {
  if (!can_encode()) return;
  std::mt19937 random(2);
  std::size_t wrong = 0;
  for (int n = 0; n < 10000; ++n) {
    const std::string text = random_text(random, 60);
    wrong += storyteller().decode(storyteller().encode(text)) != text;
  }
  CHECK(wrong == 0);
  CHECK(storyteller().encode("").empty());
}

TEST_CASE("pieces encode alone as they do together", "[model]") {
  if (!can_encode()) return;
  std::mt19937 random(3);
  const std::vector<std::string> words = {" the", " prince", " and",           "!",  " 1851", " Rapunzel",
                                          "'s",   "\n",      " \u00e9t\u00e9", "?\""};
  for (int n = 0; n < 200; ++n) {
    std::string text = "Once";
    Ids ids = storyteller().encode(text);
    for (int k = 0; k < 12; ++k) {
      // A word before a word; punctuation would join other punctuation.
      const std::string word = words[random() % 3] + (k % 3 == 2 ? words[3 + random() % 7] : "");
      text += word;
      for (const std::string& piece : {words[0], words[1], words[2]}) {
        if (!word.starts_with(piece)) continue;
        for (const std::string& part : {piece, word.substr(piece.size())}) {
          const Ids more = storyteller().encode(part);
          ids.insert(ids.end(), more.begin(), more.end());
        }
      }
    }
    INFO(text);
    REQUIRE(storyteller().encode(text) == ids);
  }
}

TEST_CASE("a slow tokenizer agrees", "[model]") {
  if (!can_encode()) return;
  std::mt19937 random(4);
  SECTION("on ASCII, with the storyteller's vocabulary") {
    const SlowTokenizer slow(storyteller_folder);
    const std::vector<std::string> parts = {" ",  "  ", "\n", "\t", "\r\n", "'", "'s",  "'ll", "'re",  "the", "ing",
                                            "er", "x",  "Q",  "7",  "10",   ".", ",\"", "--",  "\x01", "_"};
    for (int n = 0; n < 4000; ++n) {
      std::string text;
      for (std::size_t k = random() % 24; k > 0; --k) text += parts[random() % parts.size()];
      INFO(json(text).dump());
      REQUIRE(storyteller().encode(text) == slow.encode_ascii(text));
    }
  }
  SECTION("on any letters, with the storyteller's vocabulary") {
    const SlowTokenizer slow(storyteller_folder);
    for (int n = 0; n < 1000; ++n) {
      std::string text;
      for (std::size_t k = 1 + random() % 40; k > 0; --k) {
        text += random() % 4 ? std::string(1, "etaoinshrdlu"[random() % 12])
                             : utf8(static_cast<char32_t>(0xE0 + random() % 0x16));
      }
      INFO(text);
      REQUIRE(storyteller().encode(text) == slow.encode_piece(text));
    }
  }
  SECTION("with merges in an order that no training produces") {
    for (int n = 0; n < 100; ++n) {
      Folder folder;
      std::vector<std::string> tokens = {"a", "b", "c", "ab", "abc"};
      std::set<std::pair<std::string, std::string>> seen;
      std::vector<std::string> lines;
      for (int k = 0; k < 14; ++k) {
        const std::string left = tokens[random() % tokens.size()], right = tokens[random() % tokens.size()];
        if (!seen.insert({left, right}).second) continue;
        lines.push_back(left + " " + right + "\n");
        if (std::find(tokens.begin(), tokens.end(), left + right) != tokens.end()) continue;
        tokens.push_back(left + right);
        folder.add(left + right);
      }
      std::shuffle(lines.begin(), lines.end(), random);
      std::string merges;
      for (const std::string& line : lines) merges += line;
      folder.write("merges.txt", merges);
      const Tokenizer tokenizer = folder.open();
      const SlowTokenizer slow(folder / "");
      for (int k = 0; k < 40; ++k) {
        std::string text;
        for (std::size_t length = 1 + random() % 30; length > 0; --length) text += "abc"[random() % 3];
        INFO(merges << text);
        REQUIRE(tokenizer.encode(text) == slow.encode_piece(text));
      }
    }
  }
}

TEST_CASE("long runs take linear time", "[model]") {
  if (!can_encode()) return;
  constexpr std::size_t size = sanitized ? 300'000 : 2'000'000;
  struct Run {
    const char* name;
    std::string unit;
  };
  for (const Run& run : {Run{"one letter", "a"},
                         {"spaces", " "},
                         {"newlines", "\n"},
                         {"a mark", "-"},
                         {"words", " a"},
                         {"contractions", "'s"},
                         {"a special token's start", "<|"},
                         {"special tokens", "<|endoftext|>"},
                         {"spaces before a letter", " \n"},
                         {"emoji", "\U0001f600"}}) {
    INFO(run.name);
    std::string text;
    while (text.size() < size) text += run.unit;
    if (run.unit == " \n") text += "x";
    Ids ids;
    // On a busy machine this takes a second or two; quadratic time would take hours.
    CHECK(seconds_of([&] { ids = storyteller().encode(text); }) < 30);
    CHECK(storyteller().decode(ids) == text);
  }
}

TEST_CASE("several threads may use one tokenizer", "[model]") {
  if (!can_encode()) return;
  const std::string text = read_text(storyteller_folder / "config.json");
  const Ids expected = storyteller().encode(text);
  std::array<std::size_t, 4> wrong{};
  {
    std::vector<std::jthread> threads;
    for (std::size_t& mine : wrong) {
      threads.emplace_back([&] {
        for (int n = 0; n < 100; ++n) mine += storyteller().encode(text) != expected;
      });
    }
  }
  CHECK(wrong == std::array<std::size_t, 4>{});
}

TEST_CASE("white space is what Unicode defines", "[model]") {
  if (!can_encode()) return;
  Folder folder;
  folder.add("\u0120\u0120");  // two spaces
  folder.add("\u0109\u00e1");  // a tab and the first byte of U+180E
  folder.write("merges.txt", "\u0120 \u0120\n\u0109 \u00e1\n");
  const Tokenizer tokenizer = folder.open();
  // Two spaces belong to one piece if more white space ends the text, else the second one belongs to the next piece.
  for (const char32_t c : {0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x20, 0x85, 0xA0, 0x1680, 0x2000, 0x200A, 0x2028, 0x2029,
                           0x202F, 0x205F, 0x3000}) {
    INFO(std::hex << static_cast<std::uint32_t>(c));
    CHECK(tokenizer.encode("  " + utf8(c)).at(0) == 259);
  }
  for (const char32_t c :
       {0x00, 0x08, 0x0E, 0x1C, 0x1F, 0x21, 0x41, 0x31, 0x84, 0xA1, 0x180E, 0x200B, 0x2060, 0xFEFF}) {
    INFO(std::hex << static_cast<std::uint32_t>(c));
    CHECK(tokenizer.encode("  " + utf8(c)).at(0) == ' ');
  }
  CHECK(tokenizer.encode("\t\u180e").at(0) == '\t');
}

TEST_CASE("special tokens are found in the text first", "[model]") {
  if (!can_encode()) return;
  Folder folder;
  SECTION("<|endoftext|> needs no file to be special") {
    const Tokenizer tokenizer = folder.open();
    const std::int32_t end = 258;
    CHECK(tokenizer.encode("<|endoftext|>") == Ids{end});
    CHECK(tokenizer.encode("abc<|endoftext|><|endoftext|>ab") == Ids{257, end, end, 256});
    CHECK(tokenizer.encode("<|endoftext|").size() == 12);
    CHECK(tokenizer.encode("<<|endoftext|>>").size() == 3);
    // Each side is split into pieces as if it were the whole text: both spaces belong together.
    CHECK(tokenizer.decode(tokenizer.encode("  <|endoftext|>  a")) == "  <|endoftext|>  a");
  }
  SECTION("a vocabulary without it has none") {
    folder.id("<|endoftext|>") = "259";
    folder.check_refused("vocab.json", {"<|endoftext|>", "259"});
    write_text(folder / "vocab.json", [] {
      json vocabulary;
      for (int b = 0; b < 256; ++b) vocabulary[spelled(static_cast<unsigned char>(b))] = b;
      return vocabulary.dump();
    }());
    folder.write("merges.txt", "#version: 0.2\n");
    const Tokenizer tokenizer = folder.open();
    CHECK(tokenizer.size() == 256);
    CHECK(!tokenizer.id_of("<|endoftext|>"));
    CHECK(tokenizer.encode("<|endoftext|>").size() == 13);
  }
  SECTION("added tokens: the longest match wins, spaces and other scripts are accepted") {
    folder.add("\u2581y");
    folder.write("added_tokens.json", R"({"<a>": 260, "<a>>": 261})");
    folder.write("tokenizer_config.json", R"({"model_max_length": 1024, "added_tokens_decoder": {
        "258": {"content": "<|endoftext|>", "lstrip": false, "special": true},
        "262": {"content": "  "}, "263": {"content": "\u2581x"}, "260": {"content": "<a>"}}})");
    folder.write("special_tokens_map.json", R"({"bos_token": "<|endoftext|>", "eos_token": {"content": "<a>"},
        "pad_token": null, "additional_special_tokens": ["<a>>", {"content": "ab"}, "\u2581y"]})");
    const Tokenizer tokenizer = folder.open();
    CHECK(tokenizer.size() == 264);
    CHECK(tokenizer.encode("<a><a>>>") == Ids{260, 261, '>'});
    CHECK(tokenizer.encode("   \u2581x\u2581y") == Ids{262, ' ', 263, 259});
    CHECK(tokenizer.encode("abc") == Ids{256, 'c'});
    CHECK(tokenizer.bytes_of(263) == "\u2581x");
    CHECK(tokenizer.id_of("  ") == 262);
    CHECK(tokenizer.decode(Ids{261, 262, 263, 258}) == "<a>>  \u2581x<|endoftext|>");
  }
}

TEST_CASE("the flags of GPT-2's files", "[model]") {
  if (!can_encode()) return;
  Folder folder;
  SECTION("a token that takes the white space beside it, or stands alone") {
    folder.write("added_tokens.json", R"({"<l>": 259, "<r>": 260, "<w>": 261})");
    folder.write("tokenizer_config.json", R"({"added_tokens_decoder": {"259": {"content": "<l>", "lstrip": true},
        "260": {"content": "<r>", "rstrip": true}}})");
    folder.write("special_tokens_map.json", R"({"mask_token": {"content": "<w>", "single_word": true}})");
    const Tokenizer tokenizer = folder.open();
    CHECK(tokenizer.encode("a \n<l> a") == Ids{'a', 259, ' ', 'a'});
    CHECK(tokenizer.encode("a <r> \u3000a") == Ids{'a', ' ', 260, 'a'});
    CHECK(tokenizer.encode("<w>,<w>") == Ids{261, ',', 261});
    CHECK(tokenizer.encode("\u00e9<w>").size() == 5);
    CHECK(tokenizer.encode("<w>1").size() == 4);
  }
  SECTION("a blank before the text") {
    folder.write("tokenizer_config.json", R"({"add_prefix_space": true})");
    const Tokenizer tokenizer = folder.open();
    CHECK(tokenizer.encode("ab") == Ids{' ', 256});
    CHECK(tokenizer.encode(" ab") == Ids{' ', 256});
    CHECK(tokenizer.encode("ab", TextPlace::continuation) == Ids{256});
  }
  SECTION("a token before the text") {
    folder.write("tokenizer_config.json", R"({"add_bos_token": true, "bos_token": {"content": "<|endoftext|>"}})");
    const Tokenizer tokenizer = folder.open();
    CHECK(tokenizer.encode("ab") == Ids{258, 256});
    CHECK(tokenizer.encode("ab", TextPlace::beginning) == Ids{258, 256});
    CHECK(tokenizer.encode("ab", TextPlace::inner) == Ids{256});
    CHECK(tokenizer.encode("ab", TextPlace::continuation) == Ids{256});
    CHECK(tokenizer.decode(Ids{258, 256}) == "ab");
    CHECK(tokenizer.decode(Ids{258, 258, 256, 258}) == "<|endoftext|>ab<|endoftext|>");
  }
}

TEST_CASE("harmless irregularities in files are accepted", "[model]") {
  if (!can_encode()) return;
  Folder folder;
  const std::string merges = GENERATE(as<std::string>(), "a b\nab c", "#version: 0.2\r\na b\r\nab c\r\n",
                                      "#version: 0.2\na b\nab c\n\n\r\n\n");
  folder.write("merges.txt", merges);
  CHECK(folder.open().encode("abcab") == Ids{257, 256});
}

TEST_CASE("a bad vocab.json is rejected", "[model]") {
  Folder folder;
  SECTION("missing") {
    const TempDir empty;
    CHECK(says(error_of([&] { Tokenizer::open(empty.path()); }), {"vocab.json", "no such file", "merges.txt"}));
    CHECK(says(error_of([&] { Tokenizer::open(empty / "nowhere"); }), {"nowhere/vocab.json", "no such file"}));
  }
  SECTION("not a file") {
    fs::create_directory(folder / "vocab.json");
    folder.check_refused("vocab.json", {"folder"});
  }
  SECTION("wrong content") {
    const auto [text, part] = GENERATE(table<std::string, std::string>({
        {"", "empty"},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1042301\n", "git lfs pull"},
        {"<!doctype html>", "byte 1 "},
        {"{\"a\": 1", "not JSON"},
        {"{\"a\": 1,}", "not JSON"},
        {"{\"a\": 1} {}", "not JSON"},
        {"{\"\xff\": 1}", "not JSON"},
        {"{\"a\": NaN}", "not JSON"},
        {"{\"a\": 1e999}", "too large"},
        {"[]", "one JSON object"},
        {"[[[1]]]", "one JSON object"},
        {"null", "one JSON object"},
        {"7", "one JSON object"},
        {"\"a\"", "one JSON object"},
        {"{}", "0x00"},
        {"{\"\": 0}", "empty token"},
        {"{\"a\": {}}", "'a'"},
        {"{\"a\": [0]}", "'a'"},
        {"{\"a\\nb\": \"0\"}", "'a\\x0ab'"},
        {"{\"a\": 0}", "only byte-level"},
    }));
    INFO(text);
    folder.write("vocab.json", text);
    folder.check_refused("vocab.json", {part});
  }
  SECTION("ids that are not 0 to n - 1") {
    const auto [id, part] = GENERATE(table<std::string, std::string>({
        {"-1", "integer from 0"},
        {"1.5", "integer from 0"},
        {"1e2", "integer from 0"},
        {"\"256\"", "integer from 0"},
        {"null", "integer from 0"},
        {"true", "integer from 0"},
        {"2147483648", "integer from 0"},
        {"4294967296", "integer from 0"},
        {"18446744073709551615", "integer from 0"},
        {"36893488147419103232", "integer from 0"},
        {"2147483647", "run from 0 to 258"},
        {"259", "run from 0 to 258"},
    }));
    INFO(id);
    folder.id("ab") = id;
    folder.check_refused("vocab.json", {"'ab'", part});
  }
  SECTION("an id twice") {
    folder.id("ab") = "257";
    folder.check_refused("vocab.json", {"id 257", "differ"});
  }
  SECTION("a token twice") {
    folder.add("ab");
    folder.check_refused("vocab.json", {"'ab' twice"});
  }
  SECTION("a token twice, with one id") {
    folder.add("ab");
    folder.id("ab") = "259";
    folder.check_refused("vocab.json", {"'ab' twice"});
  }
  SECTION("a byte without a token") {
    const std::string text = read_text([&] {
      folder.open();
      return folder / "vocab.json";
    }());
    // U+0120 represents the space; U+0144 represents nothing.
    std::string spoilt = text;
    spoilt.replace(spoilt.find("\u0120"), 2, "aa");
    folder.write("vocab.json", spoilt);
    folder.check_refused("vocab.json", {"\u0120", "0x20"});
    spoilt = text;
    spoilt.replace(spoilt.find("\u0120"), 2, "\u0144");
    folder.write("vocab.json", spoilt);
    folder.check_refused("vocab.json", {"'\u0144'", "alphabet", "added tokens"});
  }
  SECTION("characters outside the alphabet") {
    const std::string token =
        GENERATE(as<std::string>(), " the", "\u0144", "\u00ad", "\u2581the", "\U0001f600", "a\tb");
    folder.add(token);
    folder.check_refused("vocab.json", {"alphabet"});
  }
}

TEST_CASE("a bad merges.txt is rejected", "[model]") {
  Folder folder;
  SECTION("not a file") {
    fs::remove(folder / "merges.txt");
    folder.check_refused("merges.txt", {"no such file"});
    fs::create_directory(folder / "merges.txt");
    folder.check_refused("merges.txt", {"folder"});
  }
  SECTION("wrong content") {
    const auto [text, part, reason] = GENERATE(table<std::string, std::string, std::string>({
        {"", "empty", ""},
        {"version https://git-lfs.github.com/spec/v1\n", "git lfs pull", ""},
        {"#version: 0.2\na b\nab\n", "line 3", "'ab' is not two"},
        {"#version: 0.2\na b c\n", "line 2", "'a b c' is not two"},
        {"a b\n\nab c\n", "line 2", "'' is not two"},
        {"a b\r\n\r\nab c\r\n", "line 2", "'' is not two"},
        {"a  b\n", "line 1", "not two"},
        {" a b\n", "line 1", "not two"},
        {"a b \n", "line 1", "not two"},
        {"a\tb\n", "line 1", "not two"},
        {"a \n", "line 1", "not two"},
        {" a\n", "line 1", "not two"},
        {"a b\n#version: 0.2\n", "line 2", "'#version:' is not in"},
        {"a b\nab c\nx zz\n", "line 3", "'zz' is not in"},
        {"a b\nzz x\n", "line 2", "'zz' is not in"},
        {"a b\nb c\n", "line 2", "'bc' is not in"},
        {"a b\nab \xff\n", "line 2", "is not in"},
        {"a b\nab c\na b\n", "line 3", "'a b' occurs twice"},
    }));
    INFO(text);
    folder.write("merges.txt", text);
    folder.check_refused("merges.txt", {part, reason});
  }
}

TEST_CASE("bad files of added tokens are rejected", "[model]") {
  Folder folder;
  const auto [file, text, part] = GENERATE(table<std::string, std::string, std::string>({
      {"added_tokens.json", "[]", "one JSON object"},
      {"added_tokens.json", "{\"<a>\": \"259\"}", "'<a>'"},
      {"added_tokens.json", "{\"<a>\": -1}", "'<a>'"},
      {"added_tokens.json", "{\"<a>\": 260}", "run from 0 to 259"},
      {"added_tokens.json", "{\"<a>\": 5}", "id 5"},
      {"added_tokens.json", "{\"<a>\": 259, \"<a>\": 260}", "id 260, after 259"},
      {"added_tokens.json", "{\"<|endoftext|>\": 5}", "the vocabulary 258"},
      {"added_tokens.json", "{\"\": 259}", "empty token"},
      {"tokenizer_config.json", "{", "not JSON"},
      {"tokenizer_config.json", "[]", "must look like"},
      {"tokenizer_config.json", "{\"added_tokens_decoder\": {\"259\": 1}}", "must look like"},
      {"tokenizer_config.json", "{\"added_tokens_decoder\": {\"259\": {}}}", "must look like"},
      {"tokenizer_config.json", "{\"added_tokens_decoder\": {\"259\": {\"content\": 1}}}", "must look like"},
      {"tokenizer_config.json", "{\"added_tokens_decoder\": {\"259\": {\"content\": \"\"}}}", "empty token"},
      {"tokenizer_config.json", "{\"added_tokens_decoder\": {\"x\": {\"content\": \"<a>\"}}}", "'x' is not an id"},
      {"tokenizer_config.json", "{\"added_tokens_decoder\": {\"-1\": {\"content\": \"<a>\"}}}", "'-1' is not an id"},
      {"tokenizer_config.json", "{\"added_tokens_decoder\": {\"99999999999\": {\"content\": \"<a>\"}}}",
       "is not an id"},
      {"tokenizer_config.json", "{\"add_bos_token\": true}", "add bos_token"},
      {"tokenizer_config.json", "{\"add_bos_token\": true, \"bos_token\": \"<s>\"}", "bos_token is no token"},
      {"special_tokens_map.json", "7", "must look like"},
      {"special_tokens_map.json", "{\"pad_token\": 7}", "must look like"},
      {"special_tokens_map.json", "{\"pad_token\": \"<pad>\"}", "'<pad>' has no id"},
  }));
  INFO(text);
  folder.write(file, text);
  folder.check_refused(file, {part});
}

TEST_CASE("files too large to be meant are rejected unread", "[model]") {
  const std::string file = GENERATE(as<std::string>(), "vocab.json", "merges.txt", "added_tokens.json",
                                    "tokenizer_config.json", "special_tokens_map.json");
  Folder folder;
  folder.write(file, "{}");
  fs::resize_file(folder / file, std::uintmax_t{1} << 33);  // sparse
  CHECK(seconds_of([&] { folder.check_refused(file, {"8589934592 bytes", "more than the limit of 67108864 bytes"}); }) < 2);
}

TEST_CASE("hostile JSON uses no stack", "[model]") {
  const std::string file = GENERATE(as<std::string>(), "vocab.json", "added_tokens.json", "tokenizer_config.json",
                                    "special_tokens_map.json");
  Folder folder;
  constexpr std::size_t depth = 200'000;
  folder.write(file, "{\"added_tokens_decoder\": " + std::string(depth, '[') + std::string(depth, ']') + "}");
  folder.refusal(file);
}

TEST_CASE("tokenizers load quickly", "[model]") {
  // Milliseconds in a release build; the bounds are for a sanitized one on a busy machine.
  CHECK(seconds_of([] { Tokenizer::open(storyteller_folder); }) < 2);
  if (fs::exists(gpt2_folder / "vocab.json")) CHECK(seconds_of([] { Tokenizer::open(gpt2_folder); }) < 10);
}

}  // namespace test_tokenizer
