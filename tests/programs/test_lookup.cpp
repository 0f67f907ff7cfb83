// generate --lookup: the same texts, whatever the drafts.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/running.hpp"
#include "support/support.hpp"

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
int compare(const Arguments& arguments) {
  const json plain = object(arguments);
  int accepted = 0;
  for (const char* lookup : {"1", "3", "8"}) {
    const json drafted = object(with(arguments, {"--lookup", lookup}));
    INFO(fmt::format("--lookup {}", lookup));
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

TEST_CASE("drafts by --lookup: rejects what it cannot do", "[programs]") {
  check_refused("generate", {"--lookup", "65", "x"}, {"--lookup is above 64"});
  check_refused("generate", {"--lookup", "4", "--samples", "2", "x"}, {"--lookup is for one text"});
  check_refused("generate", {"--lookup", "4", "--repeat-penalty", "1.1", "x"}, {"set --repeat-penalty 1"});
}

}  // namespace test_lookup
