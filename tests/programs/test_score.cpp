// score beyond test_programs: long texts, JSON, and a text from a pipe.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "support/catch.hpp"
#include "support/running.hpp"
#include "support/support.hpp"
#include "tessera/model/safetensors.hpp"
#include "tessera/model/tokenizer.hpp"

namespace test_score {

using namespace tessera::internal;
namespace fs = std::filesystem;
using nlohmann::json;
using Ids = std::vector<std::int32_t>;

namespace {

const fs::path story = fs::path(TESSERA_SOURCE_DIR) / "samples/models/storyteller-6m";
const std::string nano = fs::path(TESSERA_SOURCE_DIR) / "tests/data/nano-odd";
constexpr std::size_t context = 37, vocab = 101;  // of nano-odd

Ids random_ids(std::size_t count) {
  std::mt19937 random(1);
  Ids ids(count);
  for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random() % vocab);
  return ids;
}

/// The output of score for ids, with more options.
std::string scored(std::span<const std::int32_t> ids, const Arguments& more = {}) {
  Arguments arguments{"-q", "--model", nano, "--ids", fmt::format("{}", fmt::join(ids, ","))};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return output("score", arguments);
}

/// The last column of the token lines; 0 for the first. Then the total and the perplexity.
std::vector<double> numbers_of(const std::string& text) {
  std::vector<double> numbers;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::string last = line.substr(line.rfind('\t') + 1);
    numbers.push_back(last == "-" ? 0 : std::stod(last));
  }
  return numbers;
}

}  // namespace

TEST_CASE("A text longer than the context is scored through windows", "[programs]") {
  for (const std::size_t tokens : {context + 1, std::size_t{100}}) {
    const Ids ids = random_ids(tokens);
    for (const std::size_t stride : {tokens == 100 ? std::size_t{13} : 1, context / 2, context - 1}) {
      CAPTURE(tokens, stride);
      // Each window alone, as a text that fits: from later ones only the tokens that earlier ones have not reached.
      std::vector<double> expected = numbers_of(scored(std::span(ids).first(context)));
      expected.resize(context);
      for (std::size_t begin = stride; expected.size() < tokens; begin += stride) {
        const std::size_t end = std::min(begin + context, tokens), reached = expected.size();
        const auto window = numbers_of(scored(std::span(ids).subspan(begin, end - begin)));
        for (std::size_t i = reached; i < end; ++i) expected.push_back(window[i - begin]);
      }
      const std::string text = scored(ids, {"--stride", std::to_string(stride)});
      const std::vector<double> numbers = numbers_of(text);
      REQUIRE(numbers.size() == tokens + 2);
      double sum = 0;
      for (std::size_t i = 0; i < tokens; ++i) {
        CAPTURE(i);
        CHECK(numbers[i] == Approx(expected[i]).margin(1e-5));
        sum += expected[i];
      }
      CHECK(numbers[tokens] == Approx(sum).margin(1e-3));
      CHECK(numbers[tokens + 1] == Approx(std::exp(-sum / static_cast<double>(tokens - 1))).epsilon(1e-4));
      if (stride == context / 2) CHECK(scored(ids) == text);
    }
  }
  const Ids fits = random_ids(context);
  CHECK(scored(fits, {"--stride", "5"}) == scored(fits));
}

TEST_CASE("score --logits of a long text has the rows from which its numbers are computed", "[programs]") {
  const TempDir folder;
  const Ids ids = random_ids(90);
  const std::string file = folder / "logits";
  const std::vector<double> numbers = numbers_of(scored(ids, {"--logits", file, "--stride", "20"}));
  const SafeTensors written = SafeTensors::open(file);
  const StoredTensor& tensor = *written.find("logits");
  REQUIRE(tensor.shape == std::vector<std::uint64_t>{ids.size(), vocab});
  std::vector<float> logits(ids.size() * vocab);
  written.read(tensor, std::as_writable_bytes(std::span(logits)));
  for (std::size_t i = 1; i < ids.size(); ++i) {
    const float* const row = &logits[(i - 1) * vocab];
    double mass = 0;
    for (std::size_t v = 0; v < vocab; ++v) mass += std::exp(static_cast<double>(row[v]));
    CAPTURE(i);
    CHECK(numbers[i] == Approx(row[ids[i]] - std::log(mass)).margin(1e-5));
  }
}

TEST_CASE("score --json is one object with the contents of the lines", "[programs]") {
  const auto object = [](const Arguments& arguments, const Streams& streams = {}) {
    const std::string text = output("score", arguments, streams);
    CHECK(std::ranges::count(text, '\n') == 1);
    CHECK(text.ends_with('\n'));
    return json::parse(text);
  };
  const std::string text = "Once upon\n\t\"a\" é😀";
  const json scores = object({"--json", text});
  const std::vector<double> numbers = numbers_of(output("score", {text}));
  const Ids ids = Tokenizer::open(story).encode(text);
  const json& tokens = scores.at("tokens");
  REQUIRE(tokens.size() == ids.size());
  CHECK(tokens[0].at("logprob").is_null());
  CHECK(tokens[0].at("text") == "Once");
  for (std::size_t i = 0; i < ids.size(); ++i) {
    CHECK(tokens[i].at("id") == ids[i]);
    if (i > 0) CHECK(tokens[i].at("logprob").get<double>() == Approx(numbers[i]).margin(1e-6));
  }
  CHECK(scores.at("total").get<double>() == Approx(numbers[ids.size()]).margin(1e-5));
  CHECK(scores.at("perplexity").get<double>() == Approx(numbers[ids.size() + 1]).epsilon(1e-5));
  CHECK(scores.at("device").is_string());
  CHECK(scores.at("timings").at("load_ms").get<double>() > 0);
  CHECK(scores.at("timings").at("score_ms").get<double>() > 0);

  CHECK(object({"--json", "Once"}).at("perplexity").is_null());
  const json nameless = object({"--json", "--preset", "nano", "--ids", "1,2"});
  CHECK(nameless.at("tokens")[1].at("text").is_null());
  CHECK(nameless.at("tokens")[1].at("logprob").is_number());
  // Parts of characters, one token each.
  Ids bytes;
  for (int id = 1; id < 257; ++id) bytes.push_back(id);
  const json parts = object({"--json", "--ids", fmt::format("{}", fmt::join(bytes, ","))});
  CHECK(std::ranges::any_of(parts.at("tokens"), [](const json& token) { return token.at("text") == "\uFFFD"; }));
}

TEST_CASE("score and tokenize read a text from a pipe", "[programs]") {
  const std::string text = "Once upon a time\n";
  CHECK(output("score", {"-q"}, {.input = text}) == output("score", {"-q", "--", text}));
  CHECK(output("tokenize", {}, {.input = text}) == output("tokenize", {"--", text}));
  CHECK(output("tokenize", {"Once"}, {.input = text}) == output("tokenize", {"Once"}));
  // At a terminal, the missing argument is reported.
  Talk asked(Talk::Through::terminal, "score", {"-q"});
  CHECK(asked.rest().find("there is nothing to score. Give a text in quotes, or pipe one to stdin") !=
        std::string::npos);
  CHECK(asked.status() == 2);
}

TEST_CASE("Windows that make no sense are rejected, and nothing is printed", "[programs]") {
  for (const char* stride : {"0", "37", "38", "4294967295"})
    check_refused("score", {"--model", nano, "--ids", "1,2", "--stride", stride},
                  {fmt::format("--stride {}: it must be 1 to 36", stride), "37 tokens"});
  check_refused("score", {"--model", nano, "--ids", "1,2", "--stride", "-1"}, {"--stride", "'-1'"});
  Ids ids = random_ids(100);
  ids.back() = vocab;
  const TempDir folder;
  check_refused("score",
                {"--model", nano, "--ids", fmt::format("{}", fmt::join(ids, ",")), "--logits", folder / "logits"},
                {"token 101 is not in the vocabulary, which has 0 to 100"});
  CHECK_FALSE(fs::exists(folder / "logits"));
}

}  // namespace test_score
