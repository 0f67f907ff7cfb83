// generate --lookup and --draft: the same texts, whatever the drafts.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/generation.hpp"

#include "support/catch.hpp"
#include "support/running.hpp"
#include "support/support.hpp"
#include "tessera/model/session.hpp"

namespace test_lookup {

using namespace tessera::internal;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

const fs::path root = TESSERA_SOURCE_DIR;
const fs::path nano = root / "tests/data/nano-odd";
const std::string prompt = "The cat sat on the mat. The dog sat on the mat. The cat sat on";

Arguments with(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

json object(const Arguments& arguments) {
  return json::parse(output("generate", with({"-q", "--json", "--repeat-penalty", "1"}, arguments)));
}

/// Is the text the same for drafts of any length? Returns the accepted tokens of the longest.
int compare(const Arguments& arguments, const Arguments& drafts = {"--lookup"}) {
  const json plain = object(arguments);
  int accepted = 0;
  for (const char* length : {"1", "3", "8"}) {
    const json drafted = object(with(arguments, with(drafts, {length})));
    INFO(fmt::format("{} {}", drafts.back(), length));
    for (const char* field : {"ids", "text", "ended_by"}) CHECK(drafted[field] == plain[field]);
    accepted = drafted["timings"]["accepted_tokens"];
    CHECK(drafted["timings"]["draft_tokens"] >= accepted);
  }
  CHECK(plain["timings"]["draft_tokens"] == 0);
  return accepted;
}

}  // namespace

TEST_CASE("drafts by --lookup give the same text", "[programs]") {
  CHECK(compare({"--temp", "0", "-n", "150", prompt}) > 10);
  compare({"--temp", "0.8", "-s", "4", "-n", "60", prompt});
  // The text ends within a draft, at a stop text or a number of tokens.
  compare({"--temp", "0", "-n", "80", "--stop", "frightened", prompt});
  compare({"--temp", "0", "-n", "80", "--stop", "sat on the mat", prompt});
  for (const char* count : {"5", "6", "7", "8", "9"}) compare({"--temp", "0", "-n", count, prompt});
}

TEST_CASE("drafts by --lookup in a context that is full, or shifts", "[programs]") {
  const auto ids = [](const Arguments& more) {
    return output("generate", with({"-q", "--print-ids", "--repeat-penalty", "1", "--temp", "0", "--model",
                                    nano.string(), "--prompt-ids", "1,2,3,1,2,3,1,2"},
                                   more));
  };
  for (const Arguments& to : {Arguments{"-n", "1000"}, Arguments{"-n", "100", "--context-shift"},
                              Arguments{"-n", "100", "--context-shift", "--keep", "3"}})
    for (const char* lookup : {"1", "2", "5"}) CHECK(ids(with(to, {"--lookup", lookup})) == ids(to));
}

TEST_CASE("drafts by --lookup with -i: answers as without", "[programs]") {
  const auto answers = [](const Arguments& more) {
    return output("generate",
                  with({"-q", "-i", "--temp", "0", "--repeat-penalty", "1", "-n", "25", "-p", prompt}, more),
                  {.input = "The cat sat on\nand the dog\n/clear\nOne day one day one day\n"});
  };
  CHECK(answers({"--lookup", "7"}) == answers({}));
}

TEST_CASE("drafts by --lookup: a text goes on after any number of tokens, or an end", "[programs]") {
  TransformerConfig config;
  config.vocab = 61, config.positions = 100, config.width = 16, config.layers = 2, config.heads = 2, config.inner = 64;
  const Model model(Device::cpu(), config, 5);
  const std::vector<std::size_t> texts{0};
  // The tokens of some steps, of which all from `ends_from` on may choose an end token; then of a text that goes on.
  const auto tokens = [&](std::size_t lookup, int steps, int ends_from, std::int32_t end) {
    Timings timings;
    Generation text(model, 1, 100, timings);
    GenerationParams params{.sampling = {.temperature = 0}, .ends = {}};
    params.draft_tokens = lookup;
    text.append(0, {1, 2, 3, 1, 2, 3}, params);
    Ids all;
    for (int i = 0; i < steps && text.can_continue(0); ++i) {
      if (i == ends_from) params.ends = {end};
      all.push_back(text.step(params, texts)[0]);
    }
    all.push_back(text.can_continue(0) ? -1 : -2);
    params.ends = {};
    text.append(0, {5, 9}, params);
    for (int i = 0; i < 6; ++i) all.push_back(text.step(params, texts)[0]);
    all.push_back(timings.accepted > 0);
    return all;
  };
  int drafted = 0;
  const Ids plain = tokens(0, 40, 1000, -1);
  for (int steps = 1; steps < 30; ++steps) {
    INFO(steps);
    for (const int ends_from : {1000, steps / 2}) {
      const std::int32_t end = plain[static_cast<std::size_t>(steps)];
      Ids with = tokens(6, steps + 10, ends_from, end), without = tokens(0, steps + 10, ends_from, end);
      drafted += with.back();
      with.pop_back(), without.pop_back();
      CHECK(with == without);
    }
  }
  CHECK(drafted > 20);
}

TEST_CASE("drafts by --draft give the same text, whatever the model", "[programs]") {
  const fs::path shipped = root / "samples/models/storyteller-6m";
  const Arguments by_itself{"--draft", shipped.string(), "--draft-tokens"};
  CHECK(compare({"--temp", "0", "-n", "40", prompt}, by_itself) >= 8);
  CHECK(compare({"--temp", "0.8", "-s", "4", "-n", "40", prompt}, by_itself) >= 8);
  const auto ids = [&](const Arguments& more) {  // until the context is full
    return output("generate", with({"-q", "--print-ids", "--repeat-penalty", "1", "--temp", "0", "--model",
                                    nano.string(), "--prompt-ids", "1,2,3", "-n", "1000"},
                                   more));
  };
  for (const char* length : {"1", "3", "8"})
    CHECK(ids({"--draft", nano.string(), "--draft-tokens", length}) == ids({}));
  const json object = test_lookup::object({"--draft", shipped.string(), "--temp", "0", "-n", "30", prompt});
  CHECK(object["timings"]["draft_ms"] > 0);
  // The vocabulary differs.
  check_refused("generate", {"--draft", nano.string(), "--repeat-penalty", "1", prompt},
                {"a draft model must share it", "nano-odd"});
  check_refused("generate", {"--draft", "no-such-model", "--repeat-penalty", "1", prompt}, {"no-such-model"});
}

TEST_CASE("drafts: rejects what it cannot do", "[programs]") {
  check_refused("generate", {"--draft", "d", "--samples", "2", "x"}, {"--draft is for one text"});
  check_refused("generate", {"--draft", "d", "--repeat-penalty", "1.1", "x"}, {"--draft cannot verify drafts"});
  check_refused("generate", {"--draft", "d", "--lookup", "2", "x"}, {"--lookup", "--draft"});
  check_refused("generate", {"--draft-tokens", "3", "x"}, {"--draft-tokens requires --draft"});
  for (const char* count : {"0", "65"})
    check_refused("generate", {"--draft", "d", "--draft-tokens", count, "x"}, {"--draft-tokens is not in 1 to 64"});
  check_refused("generate", {"--lookup", "65", "x"}, {"--lookup is above 64"});
  check_refused("generate", {"--lookup", "4", "--samples", "2", "x"}, {"--lookup is for one text"});
  check_refused("generate", {"--lookup", "4", "--repeat-penalty", "1.1", "x"}, {"set --repeat-penalty 1"});
}

}  // namespace test_lookup
