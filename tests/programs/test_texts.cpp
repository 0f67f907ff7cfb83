// Uses of generate: JSON, batches, samples, stdin, a context that shifts, lines and Ctrl-C.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "common/interrupt.hpp"
#include "common/program.hpp"
#include "common/progress.hpp"
#include "support/catch.hpp"
#include "support/running.hpp"
#include "support/support.hpp"
#include "tessera/model/safetensors.hpp"
#include "tessera/model/tokenizer.hpp"

namespace test_texts {

using namespace tessera::internal;
namespace fs = std::filesystem;
using nlohmann::json;
using Ids = std::vector<std::int32_t>;

namespace {

const fs::path root = TESSERA_SOURCE_DIR;
const fs::path story = root / "samples/models/storyteller-6m";
const fs::path nano = root / "tests/data/nano-odd";
const Arguments endless{"--temp", "0", "--context-shift", "-n", "4294967295"};

Arguments with(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<json> lines_of(const std::string& text) {
  std::vector<json> objects;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) objects.push_back(json::parse(line));
  return objects;
}

/// The single object on stdout.
json object(const Arguments& arguments, const Streams& streams = {}) {
  const std::string text = output("generate", with({"-q", "--json"}, arguments), streams);
  REQUIRE(text.ends_with("}\n"));
  REQUIRE(lines_of(text).size() == 1);
  return json::parse(text);
}

/// The shipped model with a tokenizer for only the first `tokens` tokens: bytes, and merges of them.
struct PaddedModel {
  static constexpr std::int32_t tokens = 300;
  PaddedModel() {
    for (const char* name : {"config.json", "model.safetensors"}) fs::create_symlink(story / name, folder / name);
    const json whole = json::parse(read_text(story / "vocab.json"));
    json vocabulary;
    for (const auto& [text, id] : whole.items())
      if (id < tokens) vocabulary[text] = id;
    write_text(folder / "vocab.json", vocabulary.dump());
    std::istringstream merges(read_text(story / "merges.txt"));
    std::string first;
    std::int32_t size = 257;  // the end token, and a token for each byte
    for (std::string line; size <= tokens && std::getline(merges, line); ++size) first += line + "\n";
    write_text(folder / "merges.txt", first);
  }
  TempDir folder;
  std::string path = folder.path();
};

/// The shipped model, whose logits are not finite after the token "Z".
struct ModelThatFailsAtZ {
  ModelThatFailsAtZ() {
    for (const char* name : {"generation_config.json", "vocab.json", "merges.txt"})
      fs::create_symlink(story / name, folder / name);
    json config = json::parse(read_text(story / "config.json"));
    config["tie_word_embeddings"] = false;
    write_text(folder / "config.json", config.dump());
    const SafeTensors whole = SafeTensors::open(story / "model.safetensors");
    std::vector<std::vector<std::byte>> bytes;
    for (const StoredTensor& tensor : whole.tensors()) bytes.push_back(whole.read(tensor));
    std::vector<std::byte> spoilt;
    std::vector<TensorBytes> tensors;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const StoredTensor& tensor = whole.tensors()[i];
      tensors.push_back({tensor.name, tensor.type, tensor.shape, bytes[i]});
      if (!tensor.name.ends_with("wte.weight")) continue;
      tensors.push_back({"lm_head.weight", tensor.type, tensor.shape, bytes[i]});
      spoilt = bytes[i];
      const std::size_t row = spoilt.size() / tensor.shape[0];
      const std::int32_t token = *Tokenizer::open(story).id_of("Z");
      std::fill_n(spoilt.begin() + static_cast<std::ptrdiff_t>(row) * token, row, std::byte{0x7f});  // NaN
      tensors[i].bytes = spoilt;
    }
    write_safetensors(folder / "model.safetensors", tensors);
  }
  TempDir folder;
  std::string path = folder.path();
};

Ids ids_of(const std::string& line) {
  std::istringstream words(line);
  Ids ids;
  for (std::int32_t id; words >> id;) ids.push_back(id);
  return ids;
}

}  // namespace

TEST_CASE("--json contains the text, and more", "[programs]") {
  const Tokenizer tokenizer = Tokenizer::open(story);
  const Arguments greedy{"--temp", "0", "-n", "12", "--seed", "7", "Once upon a time"};
  const json made = object(greedy);
  const auto prompt = made.at("prompt").get<std::string>(), text = made.at("text").get<std::string>();
  CHECK(prompt == "Once upon a time");
  CHECK(output("generate", with(greedy, {"-q"})) == prompt + text + "\n");
  CHECK(made.at("prompt_ids") == tokenizer.encode(prompt));
  CHECK(made.at("ids").size() == 12);
  CHECK(tokenizer.decode(made.at("ids").get<Ids>()) == text);
  CHECK(made.at("ended_by") == "length");
  CHECK(made.at("seed") == 7);
  CHECK(made.at("model") == story.string());
  CHECK(made.at("dtype") == "f32");
  CHECK(made.at("device").get<std::string>().starts_with(test_device_name().substr(0, 3)));
  CHECK(made.at("replaced_invalid_utf8") == false);
  const json& timings = made.at("timings");
  CHECK(timings.at("prompt_tokens") == 4);
  CHECK(timings.at("eval_tokens") == 11);
  CHECK(timings.at("sample_tokens") == 12);
  for (const char* stage : {"load_ms", "compile_ms", "prompt_ms", "eval_ms", "sample_ms", "total_ms"})
    CHECK(timings.at(stage).get<double>() >= 0);

  CHECK(object(with(greedy, {"--stop", " son"})).at("ended_by") == "stop");
  CHECK(object(with(greedy, {"--stop", " son"})).at("text") == ", the king's");
  CHECK(object({"-n", "3", "--temp", "0", ""}).at("prompt") == "");

  std::string long_one;
  for (int i = 0; i < 510; ++i) long_one += " time";
  const json full = object({long_one, "--temp", "0"});
  CHECK(full.at("ended_by") == "context");
  CHECK(full.at("ids").size() == 2);
}

TEST_CASE("JSON is valid for any bytes", "[programs]") {
  const Tokenizer tokenizer = Tokenizer::open(story);
  const Ids emoji = tokenizer.encode("😀");
  const json half = object({"-n", "0", "--prompt-ids", fmt::format("{}", emoji[0])});
  CHECK(half.at("prompt").get<std::string>() + half.at("text").get<std::string>() == "\uFFFD");
  CHECK(half.at("replaced_invalid_utf8") == true);
  const json hot = object({"-n", "60", "--temp", "1000", "--top-k", "0", "--top-p", "1", "-s", "1", "\u0001\"\\x"});
  CHECK(hot.at("prompt") == "\u0001\"\\x");
  Ids all = hot.at("prompt_ids").get<Ids>();
  for (const std::int32_t id : hot.at("ids").get<Ids>())
    if (id != 0) all.push_back(id);
  CHECK(hot.at("prompt").get<std::string>() + hot.at("text").get<std::string>() == tokenizer.decode(all));
  CHECK(hot.at("replaced_invalid_utf8") == (tokenizer.decode(all).find("\uFFFD") != std::string::npos));

  const TempDir folder;
  fs::create_directory_symlink(story, folder / "\xff");
  CHECK(object({"-n", "1", "x", "--model", (folder / "\xff").string()})
            .at("model")
            .get<std::string>()
            .ends_with("\uFFFD"));
  const json ids = object({"--preset", "nano", "--prompt-ids", "1,2", "-n", "2"});
  CHECK(ids.at("ids").size() == 2);
  CHECK_FALSE(ids.contains("text"));
  check_refused("generate", {"x", "--json", "--print-ids"}, {"--json", "--print-ids"});
}

TEST_CASE("A batch has the text of each prompt alone, whatever its size", "[programs]") {
  const TempDir folder;
  const fs::path file = folder / "prompts";
  std::string long_one;
  for (int i = 0; i < 600; ++i) long_one += " time";
  const std::vector<std::string> prompts{
      "Once upon a time",    "The king", "",           long_one,
      "日本 and \"quotes\"", "A",        "\xff wrong", "She had two daughters, who were"};
  write_text(file, fmt::format("{}\n", fmt::join(prompts, "\n")));
  const Arguments options{"-q", "--seed", "5", "-n", "10"};
  const auto batch = [&](const Arguments& more, const Streams& streams = {}) {
    const Run result = run("generate", with(options, more), streams);
    INFO(result.err);
    CHECK(result.status == 1);  // because of the wrong prompts
    CHECK(result.err.empty());
    return result.out;
  };
  const std::string text = batch({"--batch", file.string()});
  const std::vector<json> made = lines_of(text);
  REQUIRE(made.size() == prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    INFO(i);
    CHECK(made[i].at("index") == i);
    if (made[i].contains("error")) continue;
    CHECK(made[i].at("prompt") == prompts[i]);
    const json alone = object(with(options, {"-p", prompts[i]}));
    for (const char* member : {"prompt", "prompt_ids", "text", "ids", "ended_by", "seed", "model", "device"})
      CHECK(made[i].at(member) == alone.at(member));
  }
  CHECK(says(made[3].at("error").get<std::string>(), {"600 tokens", "512"}));
  CHECK(says(made[6].at("error").get<std::string>(), {"not UTF-8"}));
  for (const char* size : {"1", "3"}) CHECK(batch({"--batch", file.string(), "--batch-size", size}) == text);
  // From stdin, with a byte order mark, CRLF line ends, and none at the end.
  CHECK(batch({"--batch", "-"}, {.input = fmt::format("\xef\xbb\xbf{}", fmt::join(prompts, "\r\n"))}) == text);

  CHECK(output("generate", {"-q", "--batch", "/dev/null"}).empty());
  check_refused("generate", {"--batch", "/nonexistent"}, {"cannot read '/nonexistent'"});
  check_refused("generate", {"--batch", file.string(), "x"}, {"exclude each other"});
  check_refused("generate", {"--batch", file.string(), "--batch-size", "0"}, {"--batch-size"});
  check_refused("generate", {"--batch", file.string(), "-i"}, {"--batch"});
}

TEST_CASE("An id without a token gives no text, and ends nothing", "[programs]") {
  const PaddedModel model;
  const Tokenizer tokenizer = Tokenizer::open(model.path);
  REQUIRE(tokenizer.size() == PaddedModel::tokens);
  // A temperature so high that most ids have no token.
  const Arguments hot{"-q",      "-m", model.path, "-n", "20", "--temp", "1000",
                      "--top-k", "0",  "--top-p",  "1",  "-s", "5"};
  const json made = lines_of(output("generate", with(hot, {"--json", "The"}))).at(0);
  const Ids ids = made.at("ids").get<Ids>();
  CHECK(std::ranges::count_if(ids, [](std::int32_t id) { return id >= PaddedModel::tokens; }) > 10);
  CHECK(made.at("text").get<std::string>() == tokenizer.decode(ids));
  CHECK(output("generate", with(hot, {"The"})) == "The" + tokenizer.decode(ids) + "\n");
  // Samples do not depend on the tokenizer.
  const Ids prompt = made.at("prompt_ids").get<Ids>();
  Ids all = prompt;
  all.insert(all.end(), ids.begin(), ids.end());
  const Arguments whole{"-q",      "-n", "20",      "--temp", "1000", "--top-k",     "0", "--top-p", "1", "-s", "5",
                        "--prompt-ids", fmt::format("{}", fmt::join(prompt, ",")), "--print-ids"};
  CHECK(ids_of(output("generate", whole)) == all);
  CHECK(ids_of(output("generate", with(hot, {"--print-ids", "The"}))) == all);
  // Also for ids of a prompt.
  CHECK(output("generate", {"-q", "-m", model.path, "-n", "0", "--prompt-ids", "4000," + fmt::format("{}", fmt::join(prompt, ","))}) ==
        "The\n");

  const auto samples = lines_of(output("generate", with(hot, {"--json", "--samples", "3", "The"})));
  REQUIRE(samples.size() == 3);
  CHECK(samples[0].at("ids") == ids);
  for (const json& sample : samples) CHECK(sample.at("text") == tokenizer.decode(sample.at("ids").get<Ids>()));
  for (const char* size : {"1", "4"}) {
    const auto batch = lines_of(
        output("generate", with(hot, {"--batch", "-", "--batch-size", size}), {.input = "The\nking\n\nand\nThe\n"}));
    REQUIRE(batch.size() == 5);
    for (const json& one : batch) CHECK_FALSE(one.contains("error"));
    for (const std::size_t i : {0, 4}) CHECK(batch[i].at("ids") == ids);
  }
  const Run talked = run("generate", with(hot, {"-i"}), {.input = "The\n\n"});
  CHECK(talked.status == 0);
  CHECK(talked.err.empty());
  CHECK(talked.out.starts_with(tokenizer.decode(ids) + "\n---\n"));

  const std::string scored = output("score", {"-q", "-m", model.path, "--ids", "33,4000,34"});
  CHECK(scored.find("\n1\t4000\t\"\"\t-") != scored.npos);
  const json scores = json::parse(output("score", {"-q", "--json", "-m", model.path, "--ids", "33,4000,34"}));
  CHECK(scores.at("tokens").at(1).at("text") == "");
}

TEST_CASE("A prompt's failure does not affect others", "[programs]") {
  const ModelThatFailsAtZ model;
  const Arguments options{"-q", "-m", model.path, "--temp", "0", "-n", "5"};
  const auto alone = [&](const std::string& prompt) {
    return lines_of(output("generate", with(options, {"--json", prompt}))).at(0).at("ids");
  };
  const char* const prompts[] = {"Once upon", "The king", "AZ", "Z", "She had"};
  std::string lines;
  for (const char* prompt : prompts) lines += std::string(prompt) + "\n";
  for (const char* size : {"1", "2", "8"}) {
    INFO("--batch-size " << size);
    const Run result = run("generate", with(options, {"--batch", "-", "--batch-size", size}), {.input = lines});
    CHECK(result.status == 1);
    CHECK(result.err.empty());
    const auto made = lines_of(result.out);
    REQUIRE(made.size() == 5);
    for (std::size_t i = 0; i < 5; ++i) {
      CHECK(made[i].at("prompt") == prompts[i]);
      if (made[i].at("prompt").get<std::string>().find('Z') == std::string::npos) {
        CHECK_FALSE(made[i].contains("error"));
        CHECK(made[i].at("ids") == alone(prompts[i]));
      } else {
        CHECK(made[i].at("ended_by") == "error");
        CHECK(made[i].at("error").get<std::string>().find("not finite") != std::string::npos);
      }
    }
  }
  const Run samples = run("generate", with(options, {"--samples", "3", "--json", "Z"}));
  CHECK(samples.status == 1);
  for (const json& one : lines_of(samples.out)) CHECK(one.contains("error"));
  CHECK(lines_of(samples.out).size() == 3);
  const Run texts = run("generate", with(options, {"--samples", "2", "Z"}));
  CHECK(texts.status == 1);
  CHECK(texts.out == "Z\n---\nZ\n");
  for (const char* part : {"sample 0: the model's logits are not finite", "sample 1: the model's logits"})
    CHECK(texts.err.find(part) != texts.err.npos);
  const Run text = run("generate", with(options, {"Z"}));
  CHECK(text.status == 2);
  CHECK(text.err.starts_with("generate: error: the model's logits are not finite"));
  // -i continues with the next line.
  const Run talked = run("generate", with(options, {"-i"}), {.input = "Z\n/reset\nOnce upon\n"});
  CHECK(talked.status == 0);
  CHECK(talked.err.find("not finite") != talked.err.npos);
  CHECK(talked.out.ends_with("---\n" + Tokenizer::open(story).decode(alone("Once upon").get<Ids>()) + "\n"));
  const Run full = run("generate", with(options, {"-i"}), {.input = "Once upon\nOnce\n", .output = "/dev/full"});
  CHECK(full.status == 2);
  CHECK(full.err.find("No space left") != full.err.npos);
}

TEST_CASE("A model without a first token takes its first line from -i", "[programs]") {
  const TempDir folder;
  for (const char* name : {"model.safetensors", "vocab.json", "merges.txt"})
    fs::create_symlink(story / name, folder / name);
  json config = json::parse(read_text(story / "config.json"));
  config["bos_token_id"] = config["eos_token_id"] = nullptr;
  write_text(folder / "config.json", config.dump());
  const Arguments options{"-q", "-m", folder.path().string(), "--temp", "0", "-n", "5"};
  const std::string text = output("generate", with(options, {"Once upon"}));
  const Run talked = run("generate", with(options, {"-i"}), {.input = "\nOnce upon\n"});
  CHECK(talked.status == 0);
  CHECK("Once upon" + talked.out == text);
  CHECK(says(talked.err.substr(0, talked.err.size() - 1), {"no token to begin with"}));  // the empty line
  CHECK(output("generate", with(options, {"-i", "Once upon"})) == text);
  check_refused("generate", with(options, {""}), {"no token to begin with"});
  const auto batch = run("generate", with(options, {"--batch", "-"}), {.input = "\nOnce upon\n"});
  CHECK(batch.status == 1);
  CHECK(lines_of(batch.out).at(0).contains("error"));
  CHECK("Once upon" + lines_of(batch.out).at(1).at("text").get<std::string>() + "\n" == text);
}

TEST_CASE("Samples are texts of one prompt; the first equals the text without --samples", "[programs]") {
  const Arguments options{"-q", "--seed", "5", "-n", "12", "Once upon"};
  const std::string one = output("generate", options);
  const std::string text = output("generate", with(options, {"--samples", "3"}));
  std::vector<std::string> texts;
  for (std::size_t at = 0, end = 0; end != text.npos; at = end + 5) {
    end = text.find("\n---\n", at);
    texts.push_back(end == text.npos ? text.substr(at) : text.substr(at, end + 1 - at));
  }
  REQUIRE(texts.size() == 3);
  CHECK(texts[0] == one);
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < i; ++j) CHECK(texts[i] != texts[j]);
  CHECK(output("generate", with(options, {"--samples", "3", "--batch-size", "2"})) == text);

  const std::vector<json> objects = lines_of(output("generate", with(options, {"--samples", "3", "--json"})));
  const std::string ids = output("generate", with(options, {"--samples", "3", "--print-ids"}));
  std::istringstream lines(ids);
  REQUIRE(objects.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(objects[i].at("sample") == i);
    CHECK(objects[i].contains("timings") == (i == 2));  // so that they add up
    CHECK("Once upon" + objects[i].at("text").get<std::string>() + "\n" == texts[i]);
    std::string line;
    std::getline(lines, line);
    Ids all = objects[i].at("prompt_ids").get<Ids>();
    for (const std::int32_t id : objects[i].at("ids").get<Ids>()) all.push_back(id);
    CHECK(ids_of(line) == all);
  }
  const auto both = lines_of(output("generate", {"-q", "--seed", "5", "-n", "12", "--samples", "2", "--batch", "-"},
                                    {.input = "A\nOnce upon"}));
  REQUIRE(both.size() == 4);
  CHECK(both[3].at("text") == objects[1].at("text"));
  check_refused("generate", with(options, {"--samples", "0"}), {"--samples is 0"});
}

TEST_CASE("Piped text is the prompt, if no other is given", "[programs]") {
  const Arguments options{"-q", "--temp", "0", "-n", "6"};
  const std::string text = output("generate", with(options, {"Once upon\n a"}));
  CHECK(output("generate", options, {.input = "Once upon\n a\n"}) == text);
  CHECK(output("generate", with(options, {"Once upon\n a"}), {.input = "unread"}) == text);
  check_refused("generate", options, {"UTF-8"}, {.input = "\xff"});
}

TEST_CASE("Wrong options are reported, and words without quotes", "[programs]") {
  for (const char* program : {"generate", "score", "tokenize"}) {
    check_refused(program, {"Once", "upon", "a", "time"}, {"quotes", "Once upon a time"});
    check_refused(program, {"--tmep", "0", "Hi"}, {"there is no option --tmep"});
    check_refused(program, {"-hello"}, {"-hello"});
  }
  CHECK(output("generate", {"-qn0", "Once"}) == "Once\n");
  CHECK(output("generate", {"-q", "-n", "0", "-p", "-q"}) == "-q\n");
}

TEST_CASE("A shifting context continues from its remaining part, which is evaluated again", "[programs]") {
  constexpr std::size_t positions = 37, count = 99;
  // A model without an end token, and a penalty, since it would otherwise repeat itself.
  const TempDir folder;
  json config = json::parse(read_text(nano / "config.json"));
  config.erase("eos_token_id");
  write_text(folder / "config.json", config.dump());
  fs::create_symlink(nano / "model.safetensors", folder / "model.safetensors");
  const Arguments tiny{"--model", folder.path().string(), "--print-ids", "--temp", "0",
                       "-q",      "--repeat-penalty",     "1.5"};
  const auto continued = [&](const Ids& prompt, std::size_t n, const Arguments& more = {}) {
    return ids_of(output(
        "generate",
        with(with(tiny, {"-n", std::to_string(n), "--prompt-ids", fmt::format("{}", fmt::join(prompt, ","))}), more)));
  };
  const Ids prompt{5, 17, 3, 88, 41};
  for (const int keep : {0, 4, -1}) {
    const std::size_t kept = keep < 0 ? prompt.size() : static_cast<std::size_t>(keep);
    Ids expected = prompt, context = prompt;
    while (expected.size() < prompt.size() + count) {
      if (context.size() == positions) {
        const auto begin = context.begin() + static_cast<std::ptrdiff_t>(kept);
        context.erase(begin, begin + (context.end() - begin) / 2);
      }
      const std::size_t n = std::min(positions - context.size(), prompt.size() + count - expected.size());
      const Ids all = continued(context, n);
      REQUIRE(all.size() == context.size() + n);
      expected.insert(expected.end(), all.end() - static_cast<std::ptrdiff_t>(n), all.end());
      context = all;
    }
    INFO("--keep " << keep);
    CHECK(continued(prompt, count, {"--context-shift", "--keep", std::to_string(keep)}) == expected);
  }
  CHECK(continued(prompt, count).size() == positions);
  CHECK(continued(prompt, count, {"--context-shift", "--keep", "35"}).size() == prompt.size() + count);
  // Samples do not repeat with the positions.
  const Ids all = ids_of(output(
      "generate", {"--model", folder.path().string(), "--print-ids", "-q", "-n", "64", "--prompt-ids", "5,17,3",
                   "--context-shift", "--keep", "35", "--temp", "1000", "--top-k", "0", "--top-p", "1", "-s", "1"}));
  REQUIRE(all.size() == 67);
  CHECK(std::set<std::int32_t>(all.end() - 20, all.end()).size() > 10);
  check_refused("generate", with(tiny, {"--prompt-ids", "1", "--context-shift", "--keep", "36"}), {"--keep 36", "35"});
  check_refused("generate", with(tiny, {"--prompt-ids", "1", "--context-shift", "--keep", "-2"}), {"--keep", "-1"});
  check_refused("generate", with(tiny, {"--prompt-ids", "1", "--keep", "3"}), {"--context-shift"});
}

TEST_CASE("Ctrl-C ends the text where it is, with its timings", "[programs]") {
  Talk talk(Talk::Through::pipes, "generate", with(endless, {"Once upon a time"}));
  std::string text = talk.until("daughter");
  talk.signal(SIGINT);
  text += talk.rest();
  CHECK(text.starts_with("Once upon a time, the king"));
  CHECK(text.ends_with("\n"));
  CHECK(talk.status() == 130);
  for (const char* stage : {"load = ", "prompt eval = ", "eval = ", "sample = ", "total = "})
    CHECK(talk.err().find(stage) != std::string::npos);

  SECTION("JSON is complete") {
    Talk json_talk(Talk::Through::terminal, "generate", with(endless, {"--json", "Once upon a time"}));
    json_talk.until("seed: ");
    json_talk.type("\x03");
    const std::string all = json_talk.rest();
    const std::size_t begin = all.find('{');
    REQUIRE(begin != all.npos);
    CHECK(json::parse(all.substr(begin, all.find('\n', begin) - begin)).at("ended_by") == "interrupt");
    CHECK(json_talk.status() == 130);
  }
}

// Run by the test below.
TEST_CASE("hears one SIGINT", "[.interrupt]") {
  Interrupt interrupt;
  print("listens\n");
  CHECK_FALSE(interrupt.wait_for_input(0));
  CHECK(interrupt.heard());
  interrupt.rearm();
  CHECK_FALSE(interrupt.heard());
  print("listens again\n");
  CHECK_FALSE(interrupt.wait_for_input(0));
  print("heard\n");
  char typed = 0;
  CHECK(::read(0, &typed, 1) == 1);
}

TEST_CASE("A second Ctrl-C kills", "[programs]") {
  Talk talk(Talk::Through::pipes, fs::read_symlink("/proc/self/exe").string(), {"[.interrupt]"});
  for (const char* state : {"listens\n", "listens again\n"}) {
    talk.until(state);
    talk.signal(SIGINT);
  }
  talk.until("heard\n");
  talk.signal(SIGINT);
  CHECK(talk.rest().empty());
  CHECK(talk.status() == 128 + SIGINT);
}

TEST_CASE("-i continues after each line, also through a pipe", "[programs]") {
  const auto talked = [](const std::string& lines, const Arguments& more = {}) {
    return run("generate", with({"-i", "--temp", "0", "-n", "8"}, more), {.input = lines});
  };
  const Run one = run("generate", {"-q", "--temp", "0", "-n", "16", "Once upon a time"});
  // A line, and an empty one: the text continues as if it had not stopped.
  const Run two = talked("Once upon a time\n\n", {"-q"});
  CHECK(two.status == 0);
  CHECK(two.err.empty());
  // A line of --- is between answers.
  REQUIRE(std::count(two.out.begin(), two.out.end(), '\n') == 3);
  const std::size_t end = two.out.find("\n---\n"), next = end + 5;
  REQUIRE(end == two.out.find('\n'));
  CHECK("Once upon a time" + two.out.substr(0, end) + two.out.substr(next) == one.out);
  // CRLF line ends, after a byte order mark.
  CHECK(talked("\xef\xbb\xbfOnce upon a time\r\n\r\n/quit\r\nunread\n", {"-q"}).out == two.out);
  // As a prompt, printed before; and a last line without a newline.
  CHECK(talked("", {"-q", "Once upon a time"}).out == "Once upon a time" + two.out.substr(0, end + 1));
  CHECK(talked("Once upon a time", {"-q"}).out == two.out.substr(0, end + 1));
  // Earlier text counts; /reset forgets it.
  const std::string more = talked("Once upon a time\n The king\n", {"-q"}).out;
  const json joined = object({"--temp", "0", "-n", "8", "Once upon a time" + two.out.substr(0, end) + " The king"});
  CHECK(more.substr(next) == joined.at("text").get<std::string>() + "\n");
  CHECK(talked("x\n/reset\nOnce upon a time\n", {"-q"}).out.ends_with("\n" + two.out.substr(0, end + 1)));
  // Commands, and text that is none.
  const Run commands = talked("/nope\n/temp x\n/temp -1\n/seed\n/help\n//x\n/quit\nunread\n", {"-q"});
  CHECK(commands.status == 0);
  CHECK(commands.out == object({"--temp", "0", "-n", "8", "/x"}).at("text").get<std::string>() + "\n");
  for (const char* part :
       {"no command /nope", "'x' is not a number", "temperature -1", "'' is not an integer", "/reset"})
    CHECK(commands.err.find(part) != commands.err.npos);
  const Run drawn =
      talked("/seed 5\n/temp 0.8\nOnce upon\n/reset\n/seed 6\nOnce upon\n/reset\n/seed 5\nOnce upon\n", {"-q"});
  CHECK(drawn.err.empty());
  std::istringstream answers(drawn.out);
  std::string first, second, third, mark;
  std::getline(answers, first), std::getline(answers, mark), std::getline(answers, second);
  CHECK(mark == "---");
  std::getline(answers, mark), std::getline(answers, third);
  CHECK("Once upon" + first + "\n" == output("generate", {"-q", "-s", "5", "-n", "8", "Once upon"}));
  CHECK(first != second);
  CHECK(first == third);
  // Text that does not fit is rejected, and generation continues; a shift makes room.
  std::string long_line;
  for (int i = 0; i < 600; ++i) long_line += " time";
  const Run refused = talked("Once upon a time\n" + long_line + "\n\xff\n\n", {"-q"});
  CHECK(refused.out == two.out);
  CHECK(refused.err.find("gets 600 more") != refused.err.npos);
  CHECK(refused.err.find("not UTF-8") != refused.err.npos);
  const std::string half = long_line.substr(0, 5 * 400);
  CHECK(talked(half + "\n" + half + "\n", {"-q"}).err.find("gets 400 more") != std::string::npos);
  const Run shifted = talked(half + "\n" + half + "\n", {"-q", "--context-shift"});
  CHECK(shifted.err.empty());
  CHECK(shifted.status == 0);
  CHECK(talked("Once upon a time\n").err.find("total = ") != std::string::npos);
  // Commands answer in a few words, unless -q is given.
  const Run told = talked("/seed 5\n/temp 0.5\n/reset\n/temp x\n");
  for (const char* part : {"\nseed: 5\n", "\ntemperature: 0.5\n", "\nThe text is cleared.\n", "'x' is not a number"})
    CHECK(told.err.find(part) != told.err.npos);
  check_refused("generate", {"-i", "--json"}, {"--json"});
  check_refused("generate", {"-i", "-f", "-"}, {"stdin"});
  check_refused("generate", {"-i", "--preset", "nano", "--prompt-ids", "1"}, {"tokenizer"});
}

TEST_CASE("The timings of -i exclude the time that it waits for a line", "[programs]") {
  const auto begin = std::chrono::steady_clock::now();
  Talk talk(Talk::Through::pipes, "generate", {"-i", "--temp", "0", "-n", "2"});
  talk.type("Once upon\n");
  talk.until("\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  talk.type("a time\n");
  talk.hang_up();
  talk.rest();
  CHECK(talk.status() == 0);
  const std::chrono::duration<double, std::milli> all = std::chrono::steady_clock::now() - begin;
  const std::string err = talk.err();
  const std::size_t at = err.find("total = ");
  REQUIRE(at != err.npos);
  const double total = std::stod(err.substr(at + 8));
  CHECK(total > 0);
  CHECK(total < all.count() - 1000);
}

TEST_CASE("-i in a terminal: a prompt, lines that are edited, and Ctrl-C", "[programs]") {
  Talk talk(Talk::Through::terminal, "generate", with({"-i"}, endless));
  talk.until("> ");
  talk.type("Once upon a time\n");
  talk.until("king's son");
  talk.type("\x03");  // stops the text
  talk.until("> ");
  talk.type("forget this\x03");  // discards the line
  talk.until("Press Ctrl-C again");
  talk.until("> ");
  talk.type("/reset\n");
  talk.until("> ");
#ifdef TESSERA_HAS_LIBEDIT
  talk.type("Once upon a tile\x7f\x7fme\x1b[H\x05\n");
  talk.until("king's son");
  talk.type("\x03");
  talk.until("> ");
  talk.type("\x1b[A\x1b[A");  // two lines back
  talk.until("/reset");
  talk.type("\n");
  talk.until("> ");
#endif
  const std::string leaves = GENERATE(as<std::string>(), "\x03", "\x04", "/quit\n");  // Ctrl-C twice, Ctrl-D
  if (leaves == "\x03") {
    talk.type(leaves);
    talk.until("> ");
  }
  talk.type(leaves);
  CHECK(talk.rest().find("total = ") != std::string::npos);
  CHECK(talk.status() == 0);
}

// Run in a terminal by the test below.
TEST_CASE("shows progress until something is typed", "[.progress_line]") {
  const ProgressLine line([] { return Progress{.what = "loading", .part = 0.5}; });
  char typed = 0;
  CHECK(::read(0, &typed, 1) == 1);
}

TEST_CASE("Progress is shown in a terminal that can erase it, in color unless NO_COLOR is set", "[programs]") {
  const std::string self = fs::read_symlink("/proc/self/exe").string();
  Talk color(Talk::Through::terminal, self, {"[.progress_line]"}, {"NO_COLOR="});
  Talk plain(Talk::Through::terminal, self, {"[.progress_line]"}, {"NO_COLOR=1"});
  Talk dumb(Talk::Through::terminal, self, {"[.progress_line]"}, {"TERM=dumb"});
  CHECK(color.until("50 %").find("\x1b[36m [===") != std::string::npos);
  CHECK(plain.until("50 %").ends_with("\rloading [===============               ]  50 %"));
  for (Talk* talk : {&color, &plain, &dumb}) talk->type("\n");  // by now the third would have drawn, too
  CHECK(color.rest().find("\r\x1b[K") != std::string::npos);
  CHECK(plain.rest().find("\x1b[3") == std::string::npos);
  CHECK(dumb.rest().find("loading") == std::string::npos);
  for (Talk* talk : {&color, &plain, &dumb}) CHECK(talk->status() == 0);
}

}  // namespace test_texts
