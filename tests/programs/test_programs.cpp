// The programs, run as a user runs them: their output, and how they reject errors.
#include <fmt/format.h>
#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/running.hpp"
#include "support/support.hpp"
#include "tessera/jit/device.hpp"
#include "tessera/model/safetensors.hpp"
#include "tessera/model/stop_text.hpp"
#include "tessera/model/tokenizer.hpp"
#include "tessera/model/utf8.hpp"

namespace test_programs {

using namespace tessera::internal;
namespace fs = std::filesystem;
using nlohmann::json;
using Ids = std::vector<std::int32_t>;

namespace {

const fs::path root = TESSERA_SOURCE_DIR;
const fs::path story = root / "samples/models/storyteller-6m";
const fs::path nano = root / "tests/data/nano-odd";

std::string list(const Ids& ids, const char* separator = ",") { return fmt::format("{}", fmt::join(ids, separator)); }

json golden() {
  static const json cases = [] {
    json all = json::parse(read_text(root / "tests/data/storyteller-golden.json")).at("cases");
    if (sanitized) all.erase(all.begin() + 1, all.end());
    return all;
  }();
  return cases;
}

Ids ids_of(const std::string& line) {
  Ids ids;
  std::istringstream words(line);
  for (std::int32_t id; words >> id;) ids.push_back(id);
  return ids;
}

template <class T>
std::vector<T> values(const SafeTensors& file, std::string_view name) {
  const StoredTensor* tensor = file.find(name);
  REQUIRE(tensor);
  std::vector<T> result(tensor->size / sizeof(T));
  file.read(*tensor, std::as_writable_bytes(std::span(result)));
  return result;
}

/// The shipped model with additional files.
struct StoryFolder {
  StoryFolder() {
    for (const char* name : {"config.json", "model.safetensors", "vocab.json", "merges.txt"})
      fs::create_symlink(story / name, folder / name);
  }
  TempDir folder;
};

/// nano-odd, to be corrupted.
struct NanoFolder {
  NanoFolder() {
    for (const char* name : {"config.json", "model.safetensors"}) fs::copy_file(nano / name, folder / name);
  }
  void check_refused(std::initializer_list<std::string_view> parts) const {
    const std::string path = folder.path().string();
    ::check_refused("generate", {"--model", path, "--prompt-ids", "1,2,3", "--print-ids"}, parts);
    ::check_refused("score", {"--model", path, "--ids", "1,2,3", "--logits", (folder / "logits").string()}, parts);
    CHECK_FALSE(fs::exists(folder / "logits"));
  }
  TempDir folder;
};

}  // namespace

TEST_CASE("generate continues as the reference does", "[programs]") {
  for (const json& example : golden()) {
    const auto prompt = example.at("prompt").get<std::string>();
    const auto prompt_ids = example.at("prompt_ids").get<Ids>();
    const auto ids = example.at("greedy_ids").get<Ids>();
    const auto text = example.at("greedy_text").get<std::string>();
    const std::string n = std::to_string(ids.size() - prompt_ids.size());
    CHECK(output("generate", {"--temp", "0", "--print-ids", "-n", n, prompt}) == list(ids, " ") + "\n");
    CHECK(output("generate", {"--temp", "0", "-n", n, "-p", prompt}) == text + "\n");
    CHECK(output("generate", {"--temp", "0", "-n", n, "--no-display-prompt", prompt}) ==
          text.substr(prompt.size()) + "\n");
    CHECK(output("generate", {"--temperature=0", "-n" + n, "--prompt-ids", list(prompt_ids)}) == text + "\n");
    CHECK(output("generate", {"--temp", "0", "-n", n, "-f", "-"}, {.input = prompt + "\n"}) == text + "\n");
  }
  const SafeTensors file = SafeTensors::open(nano / "golden.safetensors");
  const auto greedy = values<std::int32_t>(file, "greedy");
  const Ids prompt(greedy.begin(), greedy.begin() + 5);
  CHECK(output("generate", {"--model", nano.string(), "--prompt-ids", list(prompt), "--print-ids", "--temp", "0", "-n",
                            "24"}) == list(greedy, " ") + "\n");
}

TEST_CASE("a model may be given by its hub name, and its weights may be in several files", "[programs]") {
  const TempDir cache;
  const fs::path snapshot = cache / "models--org--name/snapshots/0123";
  fs::create_directories(snapshot);
  fs::create_directories(cache / "models--org--name/refs");
  write_text(cache / "models--org--name/refs/main", "0123");
  const SafeTensors whole = SafeTensors::open(story / "model.safetensors");
  json index;
  for (const StoredTensor& tensor : whole.tensors())
    index["weight_map"][tensor.name] = "model-00001-of-00001.safetensors";
  write_text(snapshot / "model.safetensors.index.json", index.dump());
  fs::create_symlink(story / "model.safetensors", snapshot / "model-00001-of-00001.safetensors");
  for (const char* file : {"config.json", "generation_config.json", "vocab.json", "merges.txt"})
    fs::create_symlink(story / file, snapshot / file);

  const char* const before = std::getenv("HF_HUB_CACHE");
  ::setenv("HF_HUB_CACHE", cache.path().c_str(), 1);
  const Arguments text{"Once upon a time", "-n", "8", "--temp", "0", "--model"};
  const auto with = [](Arguments arguments, const std::string& more) {
    arguments.push_back(more);
    return arguments;
  };
  CHECK(output("generate", with(text, "org/name")) == output("generate", with(text, story.string())));
  CHECK(output("score", {"Once", "-m", "org/name"}) == output("score", {"Once"}));
  CHECK(output("tokenize", {"Once", "--tokenizer", "org/name"}) == output("tokenize", {"Once"}));
  for (const char* program : {"generate", "score"})
    check_refused(program, {"x", "--model", "org/none"}, {"'org/none'", "models--org--none", "nothing is downloaded"});
  check_refused("tokenize", {"x", "--tokenizer", "none"}, {"'none'", "models--none", "nothing is downloaded"});
  fs::create_symlink(story / "model.safetensors", snapshot / "model.safetensors");
  const Run both = run("score", {"Once", "-q", "-m", "org/name"});
  CHECK(both.status == 0);
  CHECK(says(both.err.substr(0, both.err.find('\n')), {"model.safetensors.index.json", "the single file is used"}));
  before ? ::setenv("HF_HUB_CACHE", before, 1) : ::unsetenv("HF_HUB_CACHE");
}

TEST_CASE("A seed is a text", "[programs]") {
  const auto text = [](const Arguments& more) {
    Arguments arguments{"Once upon a time", "-n", "60", "-q"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return output("generate", arguments);
  };
  const std::string one = text({"--seed", "1"});
  CHECK(text({"--seed", "1"}) == one);
  std::set<std::string> texts;
  for (const char* seed : {"0", "1", "2", "18446744073709551615"}) texts.insert(text({"-s", seed}));
  CHECK(texts.size() == 4);
  CHECK(text({"--seed", "1", "--temp", "0.8", "--top-k", "40", "--top-p", "0.95", "--repeat-penalty", "1"}) == one);
  CHECK(text({"--seed", "1", "--repetition-penalty", "1.5"}) != one);
  CHECK(text({"--seed", "1", "--top-k", "1"}) == text({"--temp", "0"}));

  SECTION("a seed that was not given is printed") {
    const Run first = run("generate", {"Once upon a time", "-n", "60"});
    const std::size_t at = first.err.find("seed: ");
    REQUIRE(at != first.err.npos);
    const std::string seed = first.err.substr(at + 6, first.err.find('\n', at) - at - 6);
    CHECK(text({"--seed", seed}) == first.out);
  }
  SECTION("also with random weights") {
    const auto ids = [](const char* seed) {
      return output("generate", {"--preset", "nano", "--prompt-ids", "1,2,3", "-n", "8", "--temp", "0", "-s", seed});
    };
    CHECK(ids("1") == ids("1"));
    CHECK(ids("1") != ids("2"));
    CHECK(ids_of(ids("1")).size() == 11);
  }
}

TEST_CASE("generate reports on stderr the device and the time", "[programs]") {
  const Run result = run("generate", {"Once upon a time", "-n", "5"});
  for (const char* part :
       {"device: ", "seed: ", "load = ", "prompt eval = ", "    4 tokens", "sample = ", "total = "}) {
    INFO(part << '\n' << result.err);
    CHECK(result.err.find(part) != result.err.npos);
  }
  CHECK(run("generate", {"Once upon a time", "-n", "5", "-q"}).err.empty());
}

TEST_CASE("A model's sampling settings apply, and options override them", "[programs]") {
  const StoryFolder model;
  const auto text = [&](const char* wishes, const Arguments& more) {
    write_text(model.folder / "generation_config.json", wishes);
    Arguments arguments{"Once upon a time", "-n", "40", "-q", "--model", model.folder.path().string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return output("generate", arguments);
  };
  const std::string greedy = text("{}", {"--temp", "0"});
  const std::string sampled = text("{}", {"--seed", "5"});
  CHECK(greedy != sampled);
  CHECK(text(R"({"do_sample": false})", {}) == greedy);
  CHECK(text(R"({"do_sample": true, "top_k": 1})", {}) == greedy);
  CHECK(text(R"({"temperature": 0.0})", {}) == greedy);
  CHECK(text(R"({"temperature": 0.0, "top_k": 1})", {"--seed", "5", "--temp", "0.8", "--top-k", "40"}) == sampled);
  CHECK(text(R"({"eos_token_id": [9, 12]})", {"--temp", "0"}) == "Once upon a time\n");  // 12 is the comma
  CHECK(text(R"({"eos_token_id": 12})", {"--temp", "0", "--print-ids"}) == "2916 580 259 557 12\n");

  write_text(model.folder / "generation_config.json", R"({"temperature": -1.0})");
  check_refused("generate", {"x", "--model", model.folder.path().string()},
                {"generation_config.json", "temperature -1"});
}

TEST_CASE("A model sets the length of texts, unless -n does", "[programs]") {
  const StoryFolder model;
  const fs::path wishes = model.folder / "generation_config.json";
  Arguments arguments{"Once upon a time", "--temp", "0", "--print-ids", "-q", "--model", model.folder.path().string()};
  const auto new_tokens = [&](const char* text, const Arguments& more = {}) {
    write_text(wishes, text);
    Arguments all = arguments;
    all.insert(all.end(), more.begin(), more.end());
    const std::string ids = output("generate", all);
    return std::ranges::count(ids, ' ') + 1 - 4;  // without the prompt
  };
  CHECK(new_tokens(R"({"max_new_tokens": 3})") == 3);
  CHECK(new_tokens(R"({"max_new_tokens": 3})", {"-n", "5"}) == 5);
  CHECK(new_tokens(R"({"max_length": 6})") == 2);
  CHECK(new_tokens(R"({"max_length": 6, "max_new_tokens": 3})") == 3);
  CHECK(new_tokens(R"({"max_length": 4})", {"-n", "1"}) == 1);
  write_text(wishes, R"({"max_length": 4})");
  check_refused("generate", arguments, {"4 tokens", "max_length", "is 4", "-n"});

  // Unsupported settings are named once.
  write_text(wishes, R"({"no_repeat_ngram_size": 2, "num_beams": 1, "suppress_tokens": [5], "bad_words_ids": null})");
  arguments.insert(arguments.end(), {"-n", "1"});
  const std::string warning = run("generate", arguments).err;
  INFO(warning);
  CHECK(says(warning.substr(0, warning.find('\n')),
             {"generation_config.json", "no_repeat_ngram_size, suppress_tokens,"}));
  CHECK(std::ranges::count(warning, '\n') == 1);
}

TEST_CASE("Begin and end tokens outside of the vocabulary are ignored", "[programs]") {
  const StoryFolder model;
  json config = json::parse(read_text(model.folder / "config.json"));
  config["bos_token_id"] = config["eos_token_id"] = 50256;
  fs::remove(model.folder / "config.json");
  write_text(model.folder / "config.json", config.dump());
  write_text(model.folder / "generation_config.json", "{}");
  const Arguments arguments{"--model", model.folder.path().string(), "--temp", "0", "-n", "3", "-q", "--prompt"};
  const auto with = [&](const char* prompt) {
    Arguments all = arguments;
    all.push_back(prompt);
    return all;
  };
  CHECK(output("generate", with("Once upon a time")).starts_with("Once upon a time"));
  check_refused("generate", with(""), {"no token to begin with"});
}

TEST_CASE("generate ends before a stop text, wherever tokens begin", "[programs]") {
  const json example = golden().at(0);
  const auto prompt = example.at("prompt").get<std::string>();
  const auto text = example.at("greedy_text").get<std::string>();
  const auto stopped = [&](const Arguments& stops) {
    Arguments arguments{"--temp", "0", "-n", "96", "-q", prompt};
    for (const std::string& stop : stops) arguments.insert(arguments.end(), {"--stop", stop});
    return output("generate", arguments);
  };
  const auto before = [&](const std::string& stop) { return text.substr(0, text.find(stop, prompt.size())) + "\n"; };
  for (const char* stop : {",", " very", "ery beaut", "who was a very beautiful w", "\n\n\"I", ".\n", "n. And", "good"})
    CHECK(stopped({stop}) == before(stop));
  // Never completed: the text held back for it is printed in the end.
  CHECK(stopped({"very good boy!", "[x]"}) == text + "\n");
  CHECK(stopped({"daughter", "son", "zebra"}) == before("son"));
  CHECK(stopped({"Once upon"}) == text + "\n");  // the prompt does not count
  CHECK(output("generate", {"--temp", "0", "--print-ids", "--stop", "'s s", prompt}) ==
        "2916 580 259 557 12 260 534 374 658\n");
}

TEST_CASE("A stop text is found however the text is split", "[programs]") {
  std::mt19937 random(1);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const auto word = [&](std::size_t size) {
    std::string text(size, 'a');
    for (char& c : text) c = static_cast<char>('a' + below(2));
    return text;
  };
  for (int i = 0; i < 5000; ++i) {
    const std::string text = word(below(20));
    std::vector<std::string> stops;
    for (std::size_t n = below(4); n > 0; --n) stops.push_back(word(1 + below(6)));

    std::string expected = text;
    for (std::size_t end = 1; end <= text.size() && expected == text; ++end) {
      for (const std::string& stop : stops) {
        const std::string_view head = std::string_view(text).substr(0, end);
        if (head.ends_with(stop) && end - stop.size() < expected.size()) expected = text.substr(0, end - stop.size());
      }
    }
    StopText filter(stops);
    std::string passed;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = 1 + below(4);
      passed += filter.push(std::string_view(text).substr(at, size));
      at += size;
    }
    passed += filter.finish();
    INFO(text << " stopped by " << fmt::format("{}", fmt::join(stops, " ")));
    REQUIRE(passed == expected);
    REQUIRE(filter.found() == (expected.size() < text.size()));
  }
  CHECK(says(error_of([] { StopText({"a", ""}); }), {"empty"}));
}

TEST_CASE("Text is printed as it is generated, in whole characters", "[programs]") {
  const Tokenizer tokenizer = Tokenizer::open(story);
  const std::string prompt = "日本 😀 é";
  for (const char* seed : {"1", "2", "3"}) {
    // A temperature so high that bytes of all kinds occur.
    Arguments arguments{"-q",      "-p", prompt,    "-n", "300",    "--temp", "1000",
                        "--top-k", "0",  "--top-p", "1",  "--seed", seed};
    const Run result = run("generate", arguments);
    REQUIRE(result.status == 0);
    CHECK(result.parts.size() > 1);
    for (const std::string& part : result.parts) CHECK_FALSE(find_invalid_utf8(part));
    arguments.emplace_back("--print-ids");
    Ids ids = ids_of(output("generate", arguments));
    if (ids.back() == 0) ids.pop_back();
    CHECK(result.out == tokenizer.decode(ids) + "\n");
    CHECK(result.out.starts_with(prompt));
  }
  // A prompt that ends within a character.
  const Ids emoji = tokenizer.encode("😀");
  REQUIRE(emoji.size() > 1);
  CHECK(output("generate", {"-q", "-n", "0", "--prompt-ids", list(emoji)}) == "😀\n");
  CHECK(output("generate", {"-q", "-n", "0", "--prompt-ids", list({emoji[0]})}) == "\uFFFD\n");
}

TEST_CASE("Prompts from nothing to the whole context", "[programs]") {
  CHECK(output("generate", {"Once upon", "-n", "0"}) == "Once upon\n");
  CHECK(output("generate", {"-f", "-", "-n", "0"}, {.input = "a\n\n"}) == "a\n\n");
  CHECK(output("generate", {"[a, b]", "-n", "0"}) == "[a, b]\n");
  CHECK(output("generate", {"-n", "0", "--", "-5"}) == "-5\n");
  const std::string begun = output("generate", {"--temp", "0", "-n", "8", "--print-ids"});
  CHECK(ids_of(begun).size() == 9);
  CHECK(begun.starts_with("0 "));
  for (const Arguments& empty : {Arguments{""}, Arguments{"--prompt-ids", "[]"}, Arguments{"-f", "/dev/null"}}) {
    Arguments arguments{"--temp", "0", "-n", "8", "--print-ids"};
    arguments.insert(arguments.end(), empty.begin(), empty.end());
    CHECK(output("generate", arguments) == begun);
  }
  CHECK(output("generate", {"--temp", "0", "-n", "8"}).find("<|endoftext|>") == std::string::npos);

  Ids ids(30, 7);
  const Arguments tiny{"--model", nano.string(), "--print-ids", "--temp", "0", "-q", "-n", "99", "--prompt-ids"};
  const auto continued = [&] {
    Arguments arguments = tiny;
    arguments.push_back(list(ids));
    return run("generate", arguments);
  };
  Run result = continued();
  CHECK(result.status == 0);
  CHECK(ids_of(result.out).size() == 37);
  CHECK(says(result.err.substr(0, result.err.size() - 1), {"context of 37", "7 of 99"}));
  ids.resize(37, 7);
  result = continued();
  CHECK(result.status == 0);
  CHECK(ids_of(result.out).size() == 37);
  ids.push_back(7);
  Arguments arguments = tiny;
  arguments.push_back(list(ids));
  check_refused("generate", arguments, {"38 tokens", "37"});
}

TEST_CASE("score prints the numbers of the reference", "[programs]") {
  const TempDir folder;
  const std::string file = (folder / "logits.safetensors").string();
  const SafeTensors reference = SafeTensors::open(nano / "golden.safetensors");
  const auto expected = values<float>(reference, "logits");
  auto ids = values<std::int32_t>(reference, "ids");
  ids.resize(37);
  for (const bool narrow : {false, true}) {
    const std::string text = output(
        "score", {"--model", nano.string(), "--ids", list(ids), "--logits", file, "--dtype", narrow ? "bf16" : "f32"});
    const SafeTensors written = SafeTensors::open(file);
    REQUIRE(written.tensors().size() == 1);
    const StoredTensor& tensor = *written.find("logits");
    REQUIRE(tensor.type == StoredType::f32);
    REQUIRE(tensor.shape == std::vector<std::uint64_t>{37, 101});
    const auto logits = values<float>(written, "logits");
    double worst = 0;
    for (std::size_t i = 0; i < logits.size(); ++i)
      worst = std::max(worst, static_cast<double>(std::abs(logits[i] - expected[i])));
    CAPTURE(narrow, worst);
    CHECK(worst < (narrow ? 0.1 : 1e-4));

    std::istringstream lines(text);
    double sum = 0, value = 0;
    std::string index, id, part, number;
    for (std::size_t i = 0; i < 37; ++i) {
      lines >> index >> id >> part >> number;
      CHECK(index == std::to_string(i));
      CHECK(id == std::to_string(ids[i]));
      CHECK(part == "-");
      if (i == 0) {
        CHECK(number == "-");
        continue;
      }
      const float* row = &logits[(i - 1) * 101];
      double mass = 0;
      for (int v = 0; v < 101; ++v) mass += std::exp(static_cast<double>(row[v]));
      const double log_probability = row[ids[i]] - std::log(mass);
      sum += log_probability;
      CHECK(std::stod(number) == Approx(log_probability).margin(1e-5));
    }
    lines >> part >> value;
    CHECK(part == "total");
    CHECK(value == Approx(sum).margin(1e-3));
    lines >> part >> value;
    CHECK(part == "perplexity");
    CHECK(value == Approx(std::exp(-sum / 36)).epsilon(1e-5));
  }
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("score --logits writes to the given file, and changes nothing else about it", "[programs]") {
  const TempDir folder;
  const fs::path file = folder / "logits", link = folder / "link", fifo = folder / "fifo";
  const auto write = [&](const fs::path& path) {
    output("score", {"-q", "--preset", "nano", "--ids", "1,2,3", "--logits", path.string()});
  };
  write_text(file, "before");
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("logits", link);
  write(link);
  CHECK(fs::read_symlink(link) == "logits");
  CHECK(fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  const std::string logits = read_text(file);
  const SafeTensors written = SafeTensors::open(file);
  CHECK(written.tensors().size() == 1);

  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  std::string piped;
  std::jthread reader([&] { piped = read_text(fifo); });
  write(fifo);
  reader.join();
  CHECK(piped == logits);
  CHECK(fs::is_fifo(fifo));
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 3);
}

TEST_CASE("score of text", "[programs]") {
  const std::string text = output("score", {"Once upon\n\u0085é😀"});
  CHECK(text.find("\"Once\"\t-\n") != text.npos);
  CHECK(text.find("\" upon\"") != text.npos);
  CHECK(text.find("\\x0a") != text.npos);
  CHECK_FALSE(find_invalid_utf8(text));
  CHECK(output("score", {"-f", "-"}, {.input = "Once upon\n\u0085é😀"}) == text);
  const std::string one = output("score", {"-q", "Once"});
  CHECK(one == "0\t2916\t\"Once\"\t-\ntotal\t0.000000\nperplexity\t-\n");
  CHECK(output("score", {"--preset", "nano", "--ids", "1,2", "--seed", "3"}).starts_with("0\t1\t-\t-\n1\t2\t-\t-1"));
}

TEST_CASE("tokenize, in both directions", "[programs]") {
  const TempDir folder;
  const Tokenizer tokenizer = Tokenizer::open(story);
  CHECK(output("tokenize", {"Once upon a time"}) == "[2916, 580, 259, 557]\n");
  CHECK(output("tokenize", {""}) == "[]\n");
  for (const std::string text :
       {"a", "-a --b", "[1, 2]", "it's\r\n\n\tit\n", "日本 é 😀 e\u0301", "<|endoftext|>x", "  "}) {
    const std::string ids = output("tokenize", {"--", text});
    CHECK(ids == fmt::format("[{}]\n", list(tokenizer.encode(text), ", ")));
    CHECK(output("tokenize", {"--decode", ids}) == text + "\n");
    CHECK(output("tokenize", {"-f", "-"}, {.input = text}) == ids);
    write_text(folder / "text", text);
    CHECK(output("tokenize", {"-f", (folder / "text").string(), "--tokenizer", story.string()}) == ids);
  }
  CHECK(output("tokenize", {"--decode", "2916,580 , 259 557"}) == "Once upon a time\n");
  CHECK(output("tokenize", {"--decode", "2916,4096,580"}) == "Once upon\n");
}

TEST_CASE("Programs have help texts", "[programs]") {
  for (const char* program : {"generate", "score", "tokenize"}) {
    const Run help = run(program, {"--help"});
    CHECK(help.status == 0);
    CHECK(help.err.empty());
    CHECK(help.out.find(fmt::format("Usage: {} [OPTIONS]", program)) != help.out.npos);
    const Run version = run(program, {"--version"});
    CHECK(version.status == 0);
    CHECK(version.out.starts_with(fmt::format("{} (Tessera ", program)));
    check_refused(program, {"--nope"}, {"--nope"});
    check_refused(program, {"--nope\n\x1b[31m\xff"}, {"--nope\\x0a\\x1b[31m\\xff"});
    check_refused(program, {"two", "words"}, {"words"});
    check_refused(program, {"-f"}, {"--file"});
    check_refused(program, {"-f", "/nonexistent/\x01"}, {"cannot read", "\\x01", "No such file"});
    check_refused(program, {"-f", "/"}, {"cannot read '/'"});
    check_refused(program, {"-f", "x", "-f", "y"}, {"--file"});
    check_refused(program, {"-f", "x", "text"}, {"exclude each other"});
    check_refused(program, {"--help"}, {"stdout", "No space left"}, {.output = "/dev/full"});
    check_refused(program, {"-f", "-"}, {"UTF-8"}, {.input = "abc \xff\xfe"});
    check_refused(program, {"abc \xff"}, {"UTF-8"});
  }
  check_refused("score", {}, {"nothing to score"});
  check_refused("tokenize", {}, {"nothing to tokenize"});
}

TEST_CASE("A stdout that accepts nothing is an error", "[programs]") {
  const Streams full{.output = "/dev/full"};
  check_refused("generate", {"-q", "Once"}, {"stdout", "No space left"}, full);
  check_refused("generate", {"-q", "Once", "--no-display-prompt", "-n", "0"}, {"stdout"}, full);
  check_refused("score", {"-q", "Once"}, {"stdout"}, full);
  check_refused("tokenize", {"Once"}, {"stdout"}, full);
}

TEST_CASE("A reader that has exited ends a program quietly, as SIGPIPE would", "[programs]") {
  const auto ends = [](const std::string& program, const Arguments& arguments) {
    const Run result = run(program, arguments, {.input = "Once\n", .unread = true});
    INFO(program << '\n' << result.err);
    CHECK(result.status == 128 + SIGPIPE);
    CHECK(result.err.empty());
  };
  ends("generate", {"-q", "Once"});
  ends("generate", {"-q", "Once", "--samples", "2", "-n", "2"});
  ends("generate", {"-q", "--batch", "-", "-n", "2"});
  ends("generate", {"-q", "-i", "-n", "2"});
  ends("generate", {"--help"});
  ends("score", {"-q", "Once"});
  ends("tokenize", {"Once"});
  ends("inspect", {"--list"});
  ends("demo", {"kernel"});
  ends("demo", {"--doctor"});
  ends("01_vector_add", {});
  ends("fuzz", {"--print", "1", "7"});
}

TEST_CASE("A file beyond the size limit is an error, and is removed", "[programs]") {
  const TempDir folder;
  const auto limited = [&](const std::string& command) {
    return run("/bin/bash", {"-c", "ulimit -f 1; cd \"$1\"; exec " TESSERA_BIN_DIR "/" + command, "bash", folder.path().string()});
  };
  for (const char* command : {"score -q --preset nano --ids 1,2,3,4,5,6,7,8 --logits logits",
                              "inspect linear-128-bf16 > text"}) {
    INFO(command);
    const Run result = limited(command);
    CHECK(result.status == 2);
    CHECK(result.err.find("File too large\n") != result.err.npos);
  }
  const Run dumped = run("/bin/bash", {"-c", "ulimit -f 1; TESSERA_DUMP=cuda TESSERA_DUMP_DIR=\"$1\" " TESSERA_BIN_DIR "/05_flash_attention",
                                       "bash", folder.path().string()});
  CHECK(dumped.status == 2);
  CHECK(dumped.err.find("File too large") != dumped.err.npos);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);  // made by the shell
}

TEST_CASE("Streams that others have made non-blocking are waited for", "[programs]") {
  std::string text;
  for (int i = 0; i < 40000; ++i) text += "time ";
  const auto talked = [&](const std::string& program, const Arguments& arguments, const std::string& input) {
    Talk talk(Talk::Through::nonblocking_pipes, program, arguments);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // by then it waits
    for (std::size_t at = 0; at < input.size(); at += 1 << 15) talk.type(input.substr(at, 1 << 15));
    talk.hang_up();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // by then the other pipe is full
    const std::string out = talk.rest();
    INFO(talk.err());
    CHECK(talk.status() == 0);
    return out;
  };
  const TempDir folder;
  write_text(folder / "text", text);
  CHECK(talked("tokenize", {}, text) == output("tokenize", {"-f", (folder / "text").string()}));
  CHECK(talked("score", {"-q"}, "Once upon") == output("score", {"-q", "Once upon"}));
  CHECK(talked("generate", {"-q", "--temp", "0", "-n", "3"}, "Once upon") ==
        output("generate", {"-q", "--temp", "0", "-n", "3", "Once upon"}));
  const Arguments batch{"-q", "-s", "1", "-n", "3", "--batch", "-"};
  CHECK(talked("generate", batch, "Once upon\n") == output("generate", batch, {.input = "Once upon\n"}));
}

TEST_CASE("One Ctrl-D ends input at a terminal", "[programs]") {
  const auto typed = [](const std::string& program, const Arguments& arguments, const char* sign) {
    INFO(program);
    Talk talk(Talk::Through::terminal, program, arguments);
    talk.until("Reading from the terminal");
    talk.type("Once upon\n\x04");
    const std::string text = talk.rest();
    INFO(text);
    CHECK(text.find(sign) != text.npos);
    CHECK(talk.status() == 0);
  };
  typed("generate", {"-q", "-n", "2", "-f", "-", "--json"}, "\"ended_by\"");
  typed("generate", {"-q", "-n", "2", "--batch", "-"}, "\"index\":0");
  typed("score", {"-q", "-f", "-"}, "perplexity");
  typed("tokenize", {"-f", "-"}, "2916, 580");
}

TEST_CASE("Without a text, a program at a terminal asks for one", "[programs]") {
  for (const char* program : {"generate", "score", "tokenize"}) {
    Talk talk(Talk::Through::terminal, program, {});
    const std::string text = talk.rest();
    INFO(text);
    CHECK(text.find("ive a text in quotes, or pipe one to stdin") != text.npos);
    CHECK(text.find(fmt::format("(see {} --help)", program)) != text.npos);
    CHECK(talk.status() == 2);
  }
}

TEST_CASE("A byte order mark is not part of a text", "[programs]") {
  const TempDir folder;
  const std::string file = folder / "text";
  for (const char* text : {"Once upon", "", "\xef\xbb"}) {
    write_text(file, "\xef\xbb\xbf" + std::string(text));
    if (*text == 'O') {
      CHECK(output("tokenize", {"-f", file}) == output("tokenize", {text}));
      CHECK(output("score", {"-q", "-f", file}) == output("score", {"-q", text}));
      CHECK(output("generate", {"-q", "-n", "0", "-f", file}) == "Once upon\n");
      CHECK(output("tokenize", {}, {.input = read_text(file)}) == output("tokenize", {text}));
    }
    if (!*text) CHECK(output("tokenize", {"-f", file}) == "[]\n");
    if (*text == '\xef') check_refused("tokenize", {"-f", file}, {"UTF-8"});
  }
  CHECK(output("tokenize", {"\xef\xbb\xbfOnce"}) != output("tokenize", {"Once"}));  // typed text is taken literally
}

TEST_CASE("A model of one position scores one token", "[programs]") {
  const TempDir folder;
  const SafeTensors whole = SafeTensors::open(nano / "model.safetensors");
  std::vector<TensorBytes> tensors;
  std::vector<std::vector<std::byte>> kept;
  for (const StoredTensor& tensor : whole.tensors()) kept.push_back(whole.read(tensor));
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const StoredTensor& tensor = whole.tensors()[i];
    TensorBytes written{tensor.name, tensor.type, tensor.shape, kept[i]};
    if (tensor.name.ends_with("wpe.weight")) {
      written.bytes = written.bytes.first(kept[i].size() / written.shape[0]);
      written.shape[0] = 1;
    }
    tensors.push_back(std::move(written));
  }
  write_safetensors(folder / "model.safetensors", tensors);
  json config = json::parse(read_text(nano / "config.json"));
  for (const char* key : {"n_positions", "n_ctx"})
    if (config.contains(key)) config[key] = 1;
  write_text(folder / "config.json", config.dump());
  const std::string model = folder.path().string();
  CHECK(output("score", {"-q", "-m", model, "--ids", "7"}) == "0\t7\t-\t-\ntotal\t0.000000\nperplexity\t-\n");
  for (const Arguments& more : {Arguments{}, Arguments{"--stride", "1"}}) {
    Arguments arguments{"-q", "-m", model, "--ids", "7,8"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    check_refused("score", arguments, {"context is 1 token", "a text of 2 tokens cannot be scored"});
  }
  CHECK(output("generate", {"-q", "-m", model, "--prompt-ids", "7", "--print-ids"}) == "7\n");
}

TEST_CASE("Lessons reject unknown options, and a stdout that accepts nothing", "[programs]") {
  for (const char* lesson : {"01_vector_add", "02_softmax", "03_layer_norm", "04_linear_gelu", "05_flash_attention",
                             "06_tensors", "07_gpt2", "08_tuning"}) {
    CHECK(output(lesson, {"--print"}).find("kernel ") != std::string::npos);
    check_refused(lesson, {"--prnt"}, {"--prnt"});
    check_refused(lesson, {"--print", "more"}, {"more"});
    check_refused(lesson, {"--print"}, {"stdout", "No space left"}, {.output = "/dev/full"});
    CHECK(output(lesson, {"--help"}).find("--print") != std::string::npos);
  }
  check_refused("01_vector_add", {}, {"stdout", "No space left"}, {.output = "/dev/full"});
}

TEST_CASE("Numbers near zero are accepted, and too many threads are limited to the number of cores", "[programs]") {
  const auto text = [](const char* temperature) {
    return output("generate", {"Once upon a time", "-n", "20", "-q", "--seed", "1", "--temp", temperature});
  };
  const std::string greedy = text("0");
  for (const char* small : {"1e-46", "1e-400", "-1e-46", "1e-45", "1e-40", "1.2e-38", "0.0000001"}) {
    INFO(small);
    CHECK(text(small) == greedy);
  }
  check_refused("generate", {"x", "--temp", "1e39"}, {"--temp", "'1e39' is too large"});
  check_refused("generate", {"x", "--temp", "-1e39"}, {"--temp", "'-1e39' is too large"});
  check_refused("generate", {"x", "--temp", "1e-46x"}, {"--temp", "'1e-46x' is not a number"});

  // A lesson, whose grids are large enough to wake threads.
  const Run threads =
      run("/usr/bin/env", {"TESSERA_THREADS=4096", "TESSERA_DEVICE=cpu", TESSERA_BIN_DIR "/01_vector_add"});
  CHECK(threads.status == 0);
  CHECK(threads.err.empty());
}

TEST_CASE("Options that make no sense are rejected", "[programs]") {
  const auto refused = [](const Arguments& arguments, std::initializer_list<std::string_view> parts) {
    check_refused("generate", arguments, parts);
  };
  refused({"x", "--top-p", "2"}, {"top-p 2"});
  refused({"x", "--top-p", "0"}, {"top-p 0"});
  refused({"x", "--top-p", "nan"}, {"top-p nan"});
  refused({"x", "--top-k", "-1"}, {"top-k -1"});
  refused({"x", "--top-k", "99999999999"}, {"--top-k", "99999999999"});
  refused({"x", "--temp", "-1"}, {"temperature -1"});
  refused({"x", "--temp", "inf"}, {"temperature inf"});
  refused({"x", "--temp", "hot"}, {"--temp", "'hot'"});
  refused({"x", "--temp", ""}, {"--temp", "''"});
  refused({"x", "--temp"}, {"--temp"});
  refused({"x", "--repeat-penalty", "0"}, {"repetition penalty 0"});
  refused({"x", "-n", "-3"}, {"--max-new-tokens: '-3' is negative; give 0 or more"});
  refused({"x", "-n", "3.5"}, {"'3.5' is not an integer"});
  refused({"x", "-n", "1e3"}, {"'1e3' is not an integer"});
  refused({"x", "-n", "-"}, {"'-' is not an integer"});
  refused({"x", "-n", "99999999999"}, {"'99999999999' is too large; give 4294967295 at most"});
  refused({"x", "-n"}, {"--max-new-tokens needs a value, N (see generate --help)"});
  refused({"x", "--max-new-tokens"}, {"--max-new-tokens needs a value, N"});
  refused({"x", "-n", "3", "-n", "4"}, {"--max-new-tokens is given twice; give it once"});
  refused({"x", "-n3", "--max-new-tokens=4"}, {"--max-new-tokens is given twice"});
  refused({"-p", "Once", "upon"}, {"--prompt is given, and 'upon', too", "several words in quotes"});
  refused({"x", "--completion"}, {"--completion needs a value, SHELL"});
  refused({"x", "--keep", "-99999999999"}, {"'-99999999999' is too small; give -2147483648 at least"});
  refused({"x", "--seed", "-1"}, {"--seed", "'-1' is negative"});
  refused({"x", "--seed", "18446744073709551616"}, {"--seed", "too large"});
  refused({"x", "--stop", ""}, {"stop text"});
  refused({"x", "--stop", "\xff"}, {"stop text", "UTF-8"});
  refused({"x", "--quiet=no"}, {"--quiet takes no value"});
  refused({"x", "--device", "foo"}, {"'foo'"});
  refused({"x", "--device", "cuda:99"}, {"cuda:99"});
  if (Device::best().name().starts_with("cpu")) refused({"x", "--device", "cuda"}, {"cuda"});
  refused({"x", "--dtype", "f64"}, {"'f64'", "f32, tf32 or bf16"});
  refused({"x", "--preset", "nano"}, {"--prompt-ids"});
  refused({"--preset", "nope", "--prompt-ids", "1"}, {"nope"});
  refused({"--preset", "nano", "--prompt-ids", "1", "--stop", "x"}, {"--stop"});
  refused({"--preset", "nano", "--prompt-ids", "1", "--model", story.string()}, {"exclude each other"});
  refused({"x", "--prompt-ids", "1"}, {"exclude each other"});
  for (const char* ids : {"1,,2", "abc", "", ",", "1,", "1;2", "[1", "1]", "1.5", "0x1"})
    refused({"--prompt-ids", ids}, {"--prompt-ids", "not a list of token ids", fmt::format("'{}'", ids)});
  refused({"--prompt-ids", "99999999999"}, {"99999999999"});
  refused({"--prompt-ids", "4096"}, {"4096", "4095"});
  refused({"--prompt-ids", "-1"}, {"-1", "4095"});

  std::string text;
  for (int i = 0; i < 600; ++i) text += " time";
  refused({text}, {"600 tokens", "512"});
  check_refused("score", {""}, {"empty"});
  check_refused("score", {"--ids", "-1"}, {"-1"});
  check_refused("score", {"--ids", "4096"}, {"4096"});
  check_refused("score", {"--preset", "nano", "x"}, {"--ids"});
  check_refused("score", {"x", "--dtype", "f64"}, {"'f64'"});
  check_refused("score", {"x", "--device", "foo"}, {"'foo'"});
  check_refused("score", {"x", "--logits", "/nonexistent/logits"}, {"/nonexistent/logits", "No such file"});
  check_refused("tokenize", {"--decode", "-1"}, {"-1"});
  check_refused("tokenize", {"--decode", "1,,2"}, {"'1,,2'"});
  check_refused("tokenize", {"x", "--tokenizer", "/nonexistent"}, {"/nonexistent"});
}

TEST_CASE("An unsupported architecture is rejected as any wrong word is", "[programs]") {
  check_refused("inspect", {"softmax", "--arch", "sm_80a"}, {"'sm_80a'", "choose from sm_80, sm_86"});
  for (const char* variable : {"TESSERA_DUMP=nonsense", "TESSERA_DUMP_ARCH=sm_75"}) {
    const Run result = run("/usr/bin/env", {variable, TESSERA_BIN_DIR "/generate", "x", "-n", "1"});
    INFO(result.err);
    CHECK(result.status == 2);
    CHECK(says(result.err.substr(0, result.err.find('\n')), {"generate: error: ", variable, "choose from "}));
    CHECK(result.out.empty());
  }
}

TEST_CASE("A dumped text names the file of its graph", "[programs]") {
  const TempDir folder;
  const std::string dump_dir = "TESSERA_DUMP_DIR=" + folder.path().native();
  REQUIRE(run("/usr/bin/env", {"TESSERA_DEVICE=cpu", "TESSERA_DUMP=graph,plan", dump_dir, TESSERA_BIN_DIR "/01_vector_add"}).status == 0);
  std::map<std::string, fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.path()))
    files[entry.path().extension()] = entry.path();
  REQUIRE(files.size() == 2);
  const std::string plan = read_text(files[".plan"]);
  CHECK(plan.starts_with("from " + files[".graph"].filename().native() + "\n"));
  // The decisions, then all steps.
  const std::size_t decisions = plan.find("\nkernel vector_add for sm_90a: "), step = plan.find("] by 4 = add(");
  CHECK(decisions != plan.npos);
  CHECK(step != plan.npos);
  CHECK(decisions < step);
}

TEST_CASE("A filter that matches no kernel is reported at the end, once", "[programs]") {
  const auto filtered = [](const char* filter) {
    const Run result = run("/usr/bin/env", {"TESSERA_DUMP=graph", fmt::format("TESSERA_DUMP_FILTER={}", filter),
                                            TESSERA_BIN_DIR "/02_softmax"});
    INFO(result.err);
    CHECK(result.status == 0);
    return result.err;
  };
  const std::string none = filtered("sofmax*");
  CHECK(std::ranges::count(none, '\n') == 1);
  for (const char* part : {"nothing was dumped", "TESSERA_DUMP_FILTER=sofmax* matches no kernel", "softmax"})
    CHECK(none.find(part) != none.npos);
  for (const char* filter : {"softmax*", "*", ""}) {
    const std::string some = filtered(filter);
    CHECK(some.find("==== ") != some.npos);
    CHECK(some.find("matches no kernel") == some.npos);
  }
}

TEST_CASE("A plan can be shown after each of its passes", "[programs]") {
  const auto shown = [](const char* kernel, const std::string& stages) {
    const Run result = run("inspect", {kernel, "--show", stages});
    INFO(result.err);
    CHECK(result.status == 0);
    return result.out;
  };
  const auto has = [](const std::string& text, std::string_view part) { return text.find(part) != text.npos; };
  CHECK(has(shown("softmax", "plan:lower"), "= max along 1 of"));
  const std::string before = shown("softmax", "plan:copies"), after = shown("softmax", "plan:barriers");
  CHECK(!has(before, "    barrier\n"));
  CHECK(has(after, "    barrier\n"));
  CHECK(has(shown("softmax", "plan"), after.substr(after.find('\n'))));  // the last pass adds no step
  std::string all;
  const char* const passes[] = {"schedule",     "lower",  "plan_dce", "loads_early", "registers", "memory",
                                "tensor_cores", "copies", "pdl",      "l2_policy",   "barriers",  "parameters"};
  for (const char* pass : passes) all += std::string(all.empty() ? "" : ",") + "plan:" + pass;
  const std::string each = shown("softmax", all);
  for (const char* pass : passes)
    CHECK(has(each, fmt::format("==== softmax, plan:{} ====\nkernel softmax for sm_90a: ", pass)));
  CHECK(has(each, "==== softmax, plan:barriers ====\n" + after));
  for (const char* pass : {"nonsense", ""})
    check_refused("inspect", {"softmax", "--show", std::string("plan:") + pass},
                  {fmt::format("there is no plan pass '{}'; choose from schedule, lower, plan_dce, ", pass)});
  for (const auto& [was, now] : {std::pair("specialise", "schedule"), {"prune", "plan_dce"}, {"early", "pdl"}, {"kept", "l2_policy"}})
    check_refused("inspect", {"softmax", "--show", std::string("plan:") + was},
                  {fmt::format("the plan pass '{}' is now called {}", was, now)});
}

TEST_CASE("TESSERA_TENSOR_CORES is the highest tensor-core instruction set that matmuls use", "[programs]") {
  for (const char* stages : {"cuda", "plan:lower"}) {
    const auto of_wgmma = [&](const std::string& tier) {
      const Run result = run("/usr/bin/env", {"TESSERA_TENSOR_CORES=" + tier, TESSERA_BIN_DIR "/inspect",
                                              "linear-128-bf16", "--arch", "sm_90a", "--show", stages});
      INFO(result.err);
      CHECK(result.status == 0);
      return result.out.find("wgmma") != result.out.npos;
    };
    CHECK(of_wgmma("wgmma"));
    CHECK(of_wgmma(""));
    CHECK_FALSE(of_wgmma("mma_sync"));
  }
  const Run refused = run("/usr/bin/env", {"TESSERA_TENSOR_CORES=mma", TESSERA_BIN_DIR "/inspect", "linear-128-bf16"});
  CHECK(refused.status == 2);
  CHECK(refused.err.find("TESSERA_TENSOR_CORES=mma") != refused.err.npos);
}

TEST_CASE("Wrong model folders are rejected", "[programs]") {
  const NanoFolder model;
  const fs::path weights = model.folder / "model.safetensors", config = model.folder / "config.json";
  const std::string bytes = read_text(weights);
  const auto configured = [&](const char* key, int value) {
    json changed = json::parse(read_text(nano / "config.json"));
    changed[key] = value;
    write_text(config, changed.dump());
  };
  for (const char* program : {"generate", "score"})
    check_refused(program, {"x", "--model", "/nonexistent/model"}, {"'/nonexistent/model'", "no such folder"});

  SECTION("no tokenizer") {
    check_refused("generate", {"x", "--model", model.folder.path().string()}, {"vocab.json"});
    check_refused("score", {"x", "--model", model.folder.path().string()}, {"vocab.json"});
  }
  SECTION("no weights") {
    fs::remove(weights);
    model.check_refused({"model.safetensors"});
  }
  SECTION("truncated") {
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{7}, std::size_t{100}, bytes.size() / 2, bytes.size() - 1}) {
      write_text(weights, std::string_view(bytes).substr(0, size));
      model.check_refused({"model.safetensors"});
    }
  }
  SECTION("a header that lies") {
    for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1} << 26, ~std::uint64_t{0}}) {
      std::string lie = bytes;
      std::memcpy(lie.data(), &size, sizeof(size));
      write_text(weights, lie);
      model.check_refused({"model.safetensors"});
    }
    std::string lie = bytes;
    lie.replace(lie.find("[101,48]"), 8, "[999,48]");
    write_text(weights, lie);
    model.check_refused({"model.safetensors"});
  }
  SECTION("a Git-LFS pointer") {
    write_text(weights, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
    model.check_refused({"model.safetensors", "Git-LFS"});
  }
  SECTION("a broken configuration") {
    write_text(config, "{\"n_head\": ");
    model.check_refused({"config.json"});
    configured("n_head", 0);
    model.check_refused({"config.json", "n_head", "0"});
    configured("n_head", -3);
    model.check_refused({"config.json", "n_head"});
    configured("n_embd", 1 << 30);
    model.check_refused({"config.json", "n_embd"});
    configured("n_layer", 4);
    model.check_refused({"model.safetensors"});
  }
}

TEST_CASE("programs start where there is no CUDA: they name none of its libraries", "[programs]") {
  std::size_t programs = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(TESSERA_BIN_DIR)) {
    if (entry.path().extension() == ".so") continue;
    const Run read = run("/usr/bin/readelf", {"-d", entry.path().string()});
    INFO(entry.path() << read.err);
    REQUIRE(read.status == 0);
    CHECK(read.out.find("NEEDED") != read.out.npos);
    for (const char* library : {"libcuda", "libnvrtc", "libcudart"}) CHECK(read.out.find(library) == read.out.npos);
    ++programs;
  }
  CHECK(programs > 5);
}

}  // namespace test_programs
