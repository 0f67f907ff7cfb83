// perplexity: the tokens that count, against score, and its errors.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/running.hpp"
#include "support/support.hpp"

namespace test_perplexity {

namespace {

using nlohmann::json;

std::string list_of(const std::vector<int>& ids) { return fmt::format("{}", fmt::join(ids, ",")); }

std::vector<int> some_ids(int count) {
  std::vector<int> ids;
  for (int i = 0; i < count; ++i) ids.push_back(i * 7919 % 50257);
  return ids;
}

}  // namespace

TEST_CASE("perplexity predicts the second half of each chunk from the chunk alone", "[programs]") {
  const std::vector<int> ids = some_ids(50);
  for (const int context : {3, 16, 23, 25}) {
    INFO(context);
    double first = 0, second = 0;
    int count = 0;
    std::vector<double> expected;
    for (int begin = 0; begin + context <= 50; begin += context) {
      const std::vector<int> chunk(ids.begin() + begin, ids.begin() + begin + context);
      const json scored = json::parse(
          output("score", {"-q", "--json", "--preset", "nano", "--ids", list_of(chunk), "--device", "cpu"}));
      for (int i = context / 2 + 1; i < context; ++i) {
        const double value = scored["tokens"][static_cast<std::size_t>(i)]["logprob"];
        first -= value, second += value * value, ++count;
      }
      expected.push_back(std::exp(first / count));
    }
    const double mean = first / count,
                 error = std::sqrt((second / count - mean * mean) / (count - 1)) * expected.back();
    for (const char* batch : {"1", "2", "64"}) {
      const json found =
          json::parse(output("perplexity", {"-q", "--json", "--preset", "nano", "--ids", list_of(ids), "-c",
                                            std::to_string(context), "-b", batch, "--device", "cpu"}));
      CHECK(found["predicted"] == count);
      REQUIRE(found["after_chunks"].size() == expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i)
        CHECK(std::abs(found["after_chunks"][i].get<double>() / expected[i] - 1) < 1e-4);
      CHECK(std::abs(found["perplexity"].get<double>() / expected.back() - 1) < 1e-4);
      CHECK(std::abs(found["error"].get<double>() - error) <= 1e-3 * expected.back());
    }
  }
}

TEST_CASE("perplexity prints each chunk, and the estimate of all", "[programs]") {
  std::string text;
  for (int i = 0; i < 40; ++i) text += fmt::format("The king had {} daughters, and the youngest was the fairest. ", i);
  const std::string two =
      output("perplexity", {"-q", "-c", "100", "--chunks", "2", "--device", "cpu"}, {.input = text});
  CHECK(two.starts_with("[1]"));
  const std::size_t second = two.find(",[2]"), end = two.find(",\nFinal estimate: PPL = ");
  CHECK((second < end && end != two.npos && two.find(" +/- ") != two.npos && two.ends_with("\n")));
  CHECK(two.substr(second + 4, end - second - 4) == two.substr(end + 24, end - second - 4));
}

TEST_CASE("perplexity refuses texts and chunks that cannot be measured", "[programs]") {
  const auto refused = [](const Arguments& arguments, std::initializer_list<std::string_view> parts) {
    check_refused("perplexity", arguments, parts);
  };
  refused({"--preset", "nano", "--ids", "1,2,3", "-c", "4"}, {"3 tokens", "a chunk 4"});
  refused({"--preset", "nano", "--ids", "1,2,3", "-c", "2"}, {"--ctx-size 2", "3 to 1024"});
  refused({"--preset", "nano", "--ids", "1,2,3", "-c", "1025"}, {"--ctx-size 1025"});
  refused({"--preset", "nano", "--ids", "1,2,50257", "-c", "3"}, {"token 50257", "0 to 50256"});
  refused({"--ids", "1,2,3", "-b", "0"}, {"--batch"});
  refused({"--ids", "1,2,3", "--chunks", "0"}, {"--chunks 0"});
  refused({"--preset", "nano", "-f", "x"}, {"--preset has no tokenizer"});
  refused({"-f", "/nonexistent"}, {"/nonexistent"});
}

}  // namespace test_perplexity
