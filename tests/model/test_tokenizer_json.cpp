// tokenizer.json: ids and texts against Hugging Face's tokenizers for a small tokenizer of each family (made by
// tests/data/make_tokenizers.py), streaming, and files that are malformed or not supported.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <span>

#include "model/tokenizer/read.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"
#include "tessera/model/tokenizer.hpp"
#include "tessera/model/utf8.hpp"

namespace test_tokenizer_json {

using namespace tessera::internal;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

using Ids = std::vector<std::int32_t>;

const fs::path root = TESSERA_SOURCE_DIR;
const fs::path data = root / "tests/data/tokenizers";
const std::vector<std::string> families = {"gemma", "llama2", "llama3", "mistral", "qwen2", "smollm"};

json read_json(const fs::path& file) { return json::parse(read_text(file)); }

/// The file of a family; a test may change it.
json file_of(const std::string& family) { return read_json(data / (family + ".json")); }

Tokenizer open(const json& file) {
  const TempDir folder;
  write_text(folder / "tokenizer.json", file.dump());
  return Tokenizer::open(folder.path());
}

const std::vector<std::string>& texts() {
  static const auto all = read_json(data / "texts.json").get<std::vector<std::string>>();
  return all;
}

/// Whether this build can encode all texts; a test that cannot run reports that.
bool can_encode() {
  const std::string error = error_of([] { open(file_of("qwen2")).encode("\u00e9"); });
  if (error == "(no error)") return true;
  WARN("skipped: " << error);
  return false;
}

std::string hash_of(std::string_view bytes) {
  std::uint32_t hash = 0x811C9DC5;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x01000193;
  return fmt::format("{:08x}", hash);
}

/// The hashes of a text: those of make_tokenizers.py.
std::string hashes_of(const Tokenizer& tokenizer, const std::string& text) {
  const Ids ids = tokenizer.encode(text);
  return hash_of(fmt::format("{}", fmt::join(ids, " "))) + hash_of(tokenizer.decode(ids));
}

/// The number of texts that differ from the golden ones.
std::size_t wrong_texts(const Tokenizer& tokenizer, const std::string& golden) {
  std::size_t wrong = 0;
  REQUIRE(golden.size() % 16 == 0);
  for (std::size_t i = 0; i < golden.size() / 16; ++i) {
    if (hashes_of(tokenizer, texts()[i]) == golden.substr(16 * i, 16)) continue;
    if (wrong++ > 2) continue;
    UNSCOPED_INFO(json(texts()[i]).dump());
  }
  return wrong;
}

std::string refusal(const json& file) {
  const std::string error = error_of([&] { open(file); });
  INFO(error);
  CHECK(error.find("tokenizer.json'") != error.npos);
  CHECK(error.find('\n') == error.npos);
  return error;
}

double seconds_of(const std::function<void()>& action) {
  const auto begin = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE("each family's ids and texts are those of Hugging Face's tokenizers", "[model]") {
  if (!can_encode()) return;
  REQUIRE(texts().size() == 3000);
  for (const std::string& family : families) {
    INFO(family);
    const auto golden = read_json(data / (family + ".golden.json")).get<std::string>();
    CHECK(golden.size() == 16 * texts().size());
    CHECK(wrong_texts(open(file_of(family)), golden) == 0);
  }
}

TEST_CASE("each part of a tokenizer.json does what it does in Hugging Face's tokenizers", "[model]") {
  if (!can_encode()) return;
  const json parts = read_json(data / "parts.json");
  REQUIRE(parts.size() == 29);
  for (const json& part : parts) {
    INFO(part["name"]);
    json file = file_of(part["family"]);
    for (const auto& [key, value] : part["changes"].items()) {
      if (key == "model") {
        file[key].update(value);
      } else {
        file[key] = value;
      }
    }
    CHECK(wrong_texts(open(file), part["golden"]) == 0);
  }
}

TEST_CASE("GPT-2's two files and a tokenizer.json of them give the same ids", "[model]") {
  if (!can_encode()) return;
  const fs::path folder = root / "samples/models/storyteller-6m";
  json file = file_of("smollm");
  file["pre_tokenizer"] = file["pre_tokenizer"]["pretokenizers"][1];
  file["added_tokens"] = {{{"id", 0}, {"content", "<|endoftext|>"}, {"special", true}, {"normalized", false}}};
  file["model"]["vocab"] = read_json(folder / "vocab.json");
  std::istringstream lines(read_text(folder / "merges.txt"));
  json merges = json::array();
  std::string line;
  while (std::getline(lines, line))
    if (!line.starts_with("#version")) merges.push_back(line);
  file["model"]["merges"] = merges;
  const Tokenizer two = Tokenizer::open(folder), one = open(file);
  REQUIRE(one.size() == two.size());
  std::size_t wrong = 0;
  for (const std::string& text : texts()) wrong += one.encode(text) != two.encode(text);
  for (std::int32_t id = 0; id < one.size(); ++id) wrong += one.bytes_of(id) != two.bytes_of(id);
  CHECK(wrong == 0);

  SECTION("tokenizer.json is preferred") {
    const TempDir both;
    for (const char* name : {"vocab.json", "merges.txt"}) fs::copy(folder / name, both / name);
    write_text(both / "tokenizer.json", file_of("qwen2").dump());
    CHECK(Tokenizer::open(both.path()).id_of("<|im_start|>"));
    write_text(both / "tokenizer.json", "{");
    CHECK(says(error_of([&] { Tokenizer::open(both.path()); }), {"tokenizer.json", "not JSON"}));
  }
}

TEST_CASE("a stream of tokens gives whole characters, and the text that decode gives", "[model]") {
  if (!can_encode()) return;
  std::mt19937 random(5);
  for (const std::string& family : families) {
    INFO(family);
    const Tokenizer tokenizer = open(file_of(family));
    std::size_t wrong = 0;
    const auto check = [&](const Ids& ids) {
      TokenBytes tokens(tokenizer);
      Utf8Stream utf8;
      std::string text;
      const auto take = [&](const std::string& part) {
        wrong += find_invalid_utf8(part).has_value();
        text += part;
      };
      for (const std::int32_t id : ids) take(utf8.push(tokens.push(id)));
      take(utf8.finish());
      wrong += text != tokenizer.decode(ids);
      return text;
    };
    for (const std::string& text : texts()) {
      const Ids ids = tokenizer.encode(text);
      check(ids);
      // A part of the tokens: a character may lack its beginning or end.
      if (ids.size() > 2) check(Ids(ids.begin() + 1, ids.end() - 1));
    }
    for (int n = 0; n < 300; ++n) {
      Ids ids(random() % 20);
      for (std::int32_t& id : ids)
        id = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(tokenizer.size()));
      check(ids);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("SentencePiece's blanks and bytes in texts", "[model]") {
  const Tokenizer tokenizer = open(file_of("llama2"));
  const Ids ids = tokenizer.encode("the \U0001f602");
  REQUIRE(ids.at(0) == 1);
  CHECK(tokenizer.bytes_of(ids[1]) == " the");
  CHECK(tokenizer.bytes_of(ids.back()) == "\x82");
  CHECK(tokenizer.decode(ids) == "the \U0001f602");
  CHECK(tokenizer.id_of(" the") == ids[1]);
  CHECK(tokenizer.id_of("<s>") == 1);
  CHECK(tokenizer.id_of("\xf0") == 3 + 0xF0);
  CHECK(tokenizer.bytes_of(*tokenizer.id_of("e")) == "e");
  CHECK(tokenizer.id_of("e") > 3 + 0xFF);  // and not <0x65>
  CHECK(!tokenizer.id_of("\u2581the"));
  // A blank in front of a word is one only within a text.
  CHECK(tokenizer.decode(Ids{ids[1]}) == "the");
  CHECK(tokenizer.decode(Ids{ids[1], ids[1]}) == "the the");
  TokenBytes within(tokenizer, TextPlace::continuation);
  CHECK(within.push(ids[1]) == " the");

  SECTION("the place of a text") {
    const Ids inner(ids.begin() + 1, ids.end());
    CHECK(tokenizer.encode("the \U0001f602", TextPlace::beginning) == ids);
    CHECK(tokenizer.encode("the \U0001f602", TextPlace::inner) == inner);
    CHECK(tokenizer.encode(" the", TextPlace::continuation) == Ids{ids[1]});
    CHECK(tokenizer.encode("the", TextPlace::continuation) != Ids{ids[1]});
    CHECK(tokenizer.encode("", TextPlace::whole) == Ids{1});
    const Tokenizer first = open(file_of("mistral"));
    CHECK(first.encode("the", TextPlace::inner) == Ids{*first.id_of(" the")});
    CHECK(first.encode("the", TextPlace::continuation) != Ids{*first.id_of(" the")});
  }
  SECTION("the tokens after a text are not those of a prompt") {
    json file = file_of("llama2");
    json end = file["post_processor"]["single"][0];
    end["SpecialToken"]["id"] = "</s>";
    file["post_processor"]["single"].push_back(end);
    file["post_processor"]["special_tokens"]["</s>"] = {{"id", "</s>"}, {"ids", {2}}, {"tokens", {"</s>"}}};
    Ids ended = ids;
    ended.push_back(2);
    CHECK(open(file).encode("the \U0001f602") == ended);
    CHECK(open(file).encode("the \U0001f602", TextPlace::beginning) == ids);
  }
}

TEST_CASE("merges by score are those of SentencePiece", "[model]") {
  // The pair whose joint text is the token with the highest score, the leftmost among equals, until there is none.
  std::mt19937 random(6);
  for (int n = 0; n < 200; ++n) {
    TokenizerSpec spec{.source = "'test'"};
    use_sentencepiece(spec, false);
    std::map<std::string, float> scores;
    const auto add = [&](const std::string& text, float score) {
      if (!spec.vocabulary.add(text, static_cast<std::int32_t>(spec.scores.size()))) return;
      spec.scores.push_back(score), scores[text] = score;
    };
    for (const char* one : {"a", "b", "c"}) add(one, -100);
    for (int k = 0; k < 12; ++k) {
      std::string text;
      for (std::size_t length = 2 + random() % 4; length > 0; --length) text += "abc"[random() % 3];
      add(text, -static_cast<float>(random() % 6));
    }
    const Tokenizer tokenizer(std::move(spec));
    for (int k = 0; k < 40; ++k) {
      std::vector<std::string> symbols;
      std::string text;
      for (std::size_t length = 1 + random() % 30; length > 0; --length) {
        symbols.emplace_back(1, "abc"[random() % 3]);
        text += symbols.back();
      }
      for (;;) {
        float best = -std::numeric_limits<float>::infinity();
        std::size_t at = 0;
        for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
          const auto found = scores.find(symbols[i] + symbols[i + 1]);
          if (found != scores.end() && found->second > best) best = found->second, at = i;
        }
        if (best == -std::numeric_limits<float>::infinity()) break;
        symbols[at] += symbols[at + 1];
        symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      }
      std::vector<std::string> tokens;
      for (const std::int32_t id : tokenizer.encode(text)) tokens.emplace_back(tokenizer.bytes_of(id));
      REQUIRE(tokens == symbols);
    }
  }
}

TEST_CASE("pre-tokenizers by name cut as those of tokenizer.json", "[model]") {
  if (!can_encode()) return;
  for (const auto& [name, family] : {std::pair("smollm", "smollm"), {"llama-bpe", "llama3"}, {"qwen2", "qwen2"}}) {
    INFO(name);
    const TempDir folder;
    write_text(folder / "tokenizer.json", file_of(family).dump());
    TokenizerSpec spec = read_tokenizer(folder.path());
    spec.normalizer.clear(), spec.cuts.clear(), spec.decoder.clear();
    spec.ignore_merges = false;
    REQUIRE(find_pre_tokenizer(name));
    use_byte_level(spec, *find_pre_tokenizer(name));
    CHECK(wrong_texts(Tokenizer(std::move(spec)), read_json(data / (std::string(family) + ".golden.json"))) == 0);
  }
  CHECK(!find_pre_tokenizer("gpt-5"));
  CHECK(says(pre_tokenizer_names(), {"gpt-2, ", "smollm", "tekken"}));
}

TEST_CASE("what is not supported is refused by name", "[model]") {
  struct Case {
    std::string family, place, value;  // of JSON
    std::vector<std::string_view> parts;
  };
  const std::vector<Case> cases = {
      {"llama2", "/model/type", R"("Unigram")", {"model.type", "'Unigram'", "BPE"}},
      {"llama2", "/model/type", R"("WordPiece")", {"model.type", "'WordPiece'", "BPE"}},
      {"llama2", "/model/type", "7", {"model.type", "7"}},
      {"smollm", "/model/dropout", "0.1", {"model.dropout", "0.1", "random"}},
      {"smollm", "/model/continuing_subword_prefix", R"("##")", {"continuing_subword_prefix", "'##'"}},
      {"smollm", "/model/end_of_word_suffix", R"("</w>")", {"end_of_word_suffix", "'</w>'"}},
      {"llama2", "/model/unk_token", R"("<none>")", {"model.unk_token", "'<none>'"}},
      {"llama2", "/model/byte_fallback", "1", {"model.byte_fallback", "true or false"}},
      {"smollm", "/model/vocab", "[]", {"model.vocab", "array"}},
      {"smollm", "/model/vocab", R"({"a": "0"})", {"model.vocab", "'a'", "integer"}},
      {"smollm", "/model/vocab", R"({"a": [0]})", {"model.vocab", "'a'", "integer"}},
      {"smollm", "/model/vocab", R"({"a": {}})", {"model.vocab", "'a'", "integer"}},
      {"smollm", "/model/vocab", R"({"a": -1})", {"model.vocab", "'a'", "integer"}},
      {"smollm", "/model/vocab", R"({"": 0})", {"model.vocab", "empty"}},
      {"smollm", "/model/vocab", R"({"a": 0, "a": 1})", {"model.vocab", "'a' twice"}},
      {"smollm", "/model/vocab/HTTPServer", "5", {"id 5", "differ"}},
      {"smollm", "/model/vocab/HTTPServer", "100000000", {"'HTTPServer'", "id 100000000", "run from 0"}},
      {"smollm", "/model/merges", "{}", {"model.merges"}},
      {"smollm", "/model/merges", "[7]", {"model.merges", "entry 0"}},
      {"smollm", "/model/merges", R"([["e"]])", {"model.merges", "entry 0"}},
      {"smollm", "/model/merges", R"([["e", "r", "s"]])", {"model.merges", "entry 0"}},
      {"smollm", "/model/merges", R"([["e", {}]])", {"model.merges", "entry 0"}},
      {"smollm", "/model/merges", R"([["e", "r"], ["e", ["r"]]])", {"model.merges", "entry 1"}},
      {"smollm", "/model/merges", R"([["e", "xyz"]])", {"entry 0", "'xyz' is not in the vocabulary"}},
      {"smollm", "/model/merges", R"(["e r", "e"])", {"entry 1", "'e' is not two"}},
      {"smollm", "/model/merges", R"(["e r", "e r"])", {"entry 1", "'e r' occurs twice"}},
      {"smollm", "/normalizer", R"({"type": "BertNormalizer"})", {"normalizer.type", "'BertNormalizer'", "NFC"}},
      {"smollm", "/normalizer", "{}", {"normalizer.type is missing"}},
      {"smollm",
       "/normalizer",
       R"({"type": "Replace", "pattern": {"Regex": " "}, "content": ""})",
       {"normalizer.pattern"}},
      {"smollm", "/normalizer", R"({"type": "Replace", "pattern": {"String": ""}, "content": ""})", {"pattern.String"}},
      {"smollm", "/pre_tokenizer", R"({"type": "Whitespace"})", {"pre_tokenizer.type", "'Whitespace'", "Digits"}},
      {"smollm",
       "/pre_tokenizer/pretokenizers/0",
       R"({"type": "Punctuation"})",
       {"pretokenizers[0].type", "'Punctuation'"}},
      {"smollm",
       "/pre_tokenizer/pretokenizers/2",
       R"({"type": "Digits"})",
       {"pretokenizers[2].type", "in front of ByteLevel"}},
      {"llama3", "/pre_tokenizer/pretokenizers/0/behavior", R"("Joined")", {"behavior", "'Joined'", "Isolated"}},
      {"llama3", "/pre_tokenizer/pretokenizers/0/pattern/Regex", R"("(a")", {"'(a'", "PCRE2"}},
      {"llama3", "/pre_tokenizer/pretokenizers/0/pattern/Regex", R"("[a&&b]")", {"'[a&&b]'", "&&"}},
      {"llama3", "/pre_tokenizer/pretokenizers/0/pattern/Regex", R"("[a[b]]")", {"'[a[b]]'", "set within a set"}},
      {"llama3", "/pre_tokenizer/pretokenizers/0/pattern/Regex", R"("\\h")", {"'\\h'"}},
      {"llama3", "/pre_tokenizer/pretokenizers/0/pattern", "{}", {"pattern.Regex is missing"}},
      {"mistral", "/pre_tokenizer/prepend_scheme", R"("last")", {"prepend_scheme", "'last'", "first"}},
      {"llama2", "/post_processor", R"({"type": "RobertaProcessing"})", {"post_processor.type", "'RobertaProcessing'"}},
      {"llama2", "/post_processor/single", "[]", {"post_processor.single", "sequence A"}},
      {"llama2", "/post_processor/single/0/SpecialToken/id", R"("<b>")", {"special_tokens.<b> is missing"}},
      {"llama2", "/post_processor/special_tokens/<s>/ids/0", "100000", {"100000", "run from 0"}},
      {"llama2", "/decoder", "null", {"decoder is missing"}},
      {"llama2", "/decoder", R"({"type": "WordPiece"})", {"decoder.type", "'WordPiece'"}},
      {"llama2", "/decoder", R"({"type": "ByteLevel"})", {"decoder has ByteLevel"}},
      {"smollm", "/decoder", R"({"type": "Fuse"})", {"pre_tokenizer has ByteLevel"}},
      {"llama2", "/decoder/decoders/3/stop", "1", {"decoder.decoders[3].stop", "0"}},
      {"llama2", "/decoder/decoders/4", R"({"type": "ByteFallback"})", {"decoders[4].type", "Strip"}},
      {"smollm", "/added_tokens/0/content", R"("")", {"added_tokens[0].content", "not empty"}},
      {"smollm", "/added_tokens/0/id", "3", {"id 3", "differ"}},
      {"smollm", "/added_tokens/0/id", "1e3", {"added_tokens[0].id", "integer"}},
      {"smollm", "/added_tokens/1/content", R"("<|endoftext|>")", {"'<|endoftext|>' twice"}},
      {"smollm", "/added_tokens/0/content", R"("HTTPServer")", {"'HTTPServer' id", "the vocabulary"}},
      {"smollm", "/added_tokens", "{}", {"added_tokens", "an array"}},
      {"smollm", "/model", "[]", {"model", "object"}},
  };
  for (const Case& c : cases) {
    INFO(c.family << c.place << " " << c.value);
    json file = file_of(c.family);
    const json::json_pointer place(c.place);
    // A duplicate key is lost in a document, so the text is replaced.
    file[place] = "REPLACED";
    std::string text = file.dump();
    text.replace(text.find("\"REPLACED\""), 10, c.value);
    const TempDir folder;
    write_text(folder / "tokenizer.json", text);
    const std::string error = error_of([&] { Tokenizer::open(folder.path()); });
    INFO(error);
    CHECK(error.find((folder / "tokenizer.json").string()) != error.npos);
    for (const std::string_view part : c.parts) CHECK(error.find(part) != error.npos);
  }
  json file = file_of("llama2");
  file.erase("model");
  CHECK(says(refusal(file), {"model is missing"}));
}

TEST_CASE("nested and long sequences of a tokenizer.json end", "[model]") {
  json file = file_of("smollm");
  json nested = file["pre_tokenizer"];
  for (int depth = 0; depth < 20; ++depth) nested = {{"type", "Sequence"}, {"pretokenizers", {nested}}};
  file["pre_tokenizer"] = nested;
  CHECK(says(refusal(file), {"within 8 others"}));

  file = file_of("smollm");
  json many = json::array();
  for (int n = 0; n < 1000; ++n) many.push_back(file["pre_tokenizer"]["pretokenizers"][0]);
  many.push_back(file["pre_tokenizer"]["pretokenizers"][1]);
  file["pre_tokenizer"]["pretokenizers"] = many;
  CHECK(says(refusal(file), {"1001 steps", "at most 32"}));

  constexpr std::size_t depth = 200'000;
  const TempDir folder;
  for (const char* key : {"pre_tokenizer", "model"}) {
    write_text(folder / "tokenizer.json",
               fmt::format("{{\"{}\": {}{}}}", key, std::string(depth, '['), std::string(depth, ']')));
    CHECK(says(error_of([&] { Tokenizer::open(folder.path()); }), {"tokenizer.json"}));
  }
}

TEST_CASE("a cut or changed tokenizer.json is refused, or is another tokenizer", "[model]") {
  if (!can_encode()) return;
  std::mt19937 random(8);
  const TempDir folder;
  std::size_t refused = 0, opened = 0;
  const auto check = [&](const std::string& text) {
    write_text(folder / "tokenizer.json", text);
    try {
      const Tokenizer tokenizer = Tokenizer::open(folder.path());
      ++opened;
      for (std::size_t i = 0; i < 20; ++i) std::ignore = tokenizer.decode(tokenizer.encode(texts()[i]));
    } catch (const Error&) {
      ++refused;
    }
  };
  for (const std::string& family : families) {
    const std::string whole = read_text(data / (family + ".json"));
    const std::size_t head = whole.find("\"vocab\""), tail = 200;
    for (int n = 0; n < 20; ++n) check(whole.substr(0, random() % (whole.size() - 2)));
    CHECK(opened == 0);
    for (int n = 0; n < 60; ++n) {
      std::string changed = whole;
      // In the description, in the vocabulary or in the merges.
      const std::size_t at = n % 2   ? random() % head
                             : n % 4 ? random() % whole.size()
                                     : whole.size() - 1 - random() % tail;
      changed[at] = static_cast<char>(changed[at] ^ (1 << random() % 8));
      check(changed);
    }
    opened = 0;
  }
  CHECK(refused > families.size() * 40);
}

TEST_CASE("long texts take linear time in characters, too", "[model]") {
  constexpr std::size_t size = sanitized ? 100'000 : 1'000'000;
  if (!can_encode()) return;
  for (const std::string& family : families) {
    const Tokenizer tokenizer = open(file_of(family));
    for (const std::string_view unit : {"a", " ", "\n", " the", "<", "\u2581", "\U0001f600", "e\u0301", "\n x", "1"}) {
      INFO(family << " " << json(unit).dump());
      std::string text;
      while (text.size() < size) text += unit;
      Ids ids;
      // On a busy machine this takes a second or two; quadratic time would take hours.
      CHECK(seconds_of([&] { ids = tokenizer.encode(text); }) < 30);
      if (unit[0] != '\xe2' && unit[0] != 'e') CHECK(tokenizer.decode(ids) == text);
    }
  }
}

}  // namespace test_tokenizer_json
