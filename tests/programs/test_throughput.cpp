// throughput: what it measures, its formats, and its errors.
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/running.hpp"
#include "support/support.hpp"

namespace test_throughput {

namespace {

const Arguments nano{"-q", "--preset", "nano", "-r", "3", "--device", "cpu"};

Arguments with(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("throughput measures prompts, new tokens and both, at each depth and batch", "[programs]") {
  const auto found = nlohmann::json::parse(output(
      "throughput", with(nano, {"-p", "16,8", "-n", "4", "--both", "8+2", "-d", "0,5", "-b", "1,3", "-o", "json"})));
  const std::vector<std::string> tests{"pp16",      "pp8",      "tg4",      "pp8+tg2",
                                       "pp16 @ d5", "pp8 @ d5", "tg4 @ d5", "pp8+tg2 @ d5"};
  REQUIRE(found.size() == 2 * tests.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const nlohmann::json& one = found[i];
    CHECK(one["test"] == tests[i % tests.size()]);
    CHECK(one["batch"] == (i < tests.size() ? 1 : 3));
    CHECK(one["depth"] == (i % tests.size() < 4 ? 0 : 5));
    CHECK(one["model"] == "nano");
    CHECK(one["parameters"] == 2546400);  // 50257 x 48 and 1024 x 48 embeddings, 3 layers, a norm
    double sum = 0, squares = 0;
    REQUIRE(one["samples"].size() == 3);
    for (const double sample : one["samples"]) {
      CHECK(sample > 0);
      sum += sample;
    }
    const double mean = one["tokens_per_second"];
    CHECK(std::abs(mean - sum / 3) < 1e-6 * mean);
    for (const double sample : one["samples"]) squares += (sample - mean) * (sample - mean);
    CHECK(std::abs(one["deviation"].get<double>() - std::sqrt(squares / 2)) < 1e-6 * mean);
  }
}

TEST_CASE("throughput prints Markdown and CSV, one line for each measurement", "[programs]") {
  const std::vector<std::string> md = lines_of(output("throughput", with(nano, {"-p", "4", "-n", "2"})));
  REQUIRE(md.size() == 4);
  CHECK(says(md[0], {"| model |", "| tokens/s |"}));
  CHECK(says(md[2], {"| nano | 2.5 M | cpu", "| f32 | 1 | pp4 | ", " ± "}));
  CHECK(says(md[3], {"| tg2 | "}));
  const std::vector<std::string> csv = lines_of(output("throughput", with(nano, {"-p", "4", "-n", "0", "-o", "csv"})));
  REQUIRE(csv.size() == 2);
  CHECK(csv[0] == "model,parameters,device,dtype,batch,prompt,new,depth,test,tokens_per_second,deviation");
  CHECK(says(csv[1], {"\"nano\",2546400,\"cpu", "\",f32,1,4,0,0,pp4,"}));
  // By default, half and a quarter of a short context.
  const std::vector<std::string> shipped = lines_of(output("throughput", {"-q", "-r", "1", "--device", "cpu"}));
  REQUIRE(shipped.size() == 4);
  CHECK(says(shipped[2], {"| storyteller-6m | 5.9 M |", "| pp256 | "}));
  CHECK(says(shipped[3], {"| tg128 | "}));
}

TEST_CASE("throughput refuses what it cannot measure, before it measures anything", "[programs]") {
  const auto refused = [](const Arguments& arguments, std::initializer_list<std::string_view> parts) {
    check_refused("throughput", with(nano, arguments), parts);
  };
  refused({"-p", "1025"}, {"pp1025 takes 1025 tokens, and the model's context has 1024"});
  refused({"--both", "1000+20", "-d", "5"}, {"pp1000+tg20 @ d5 takes 1025 tokens"});
  refused({"-p", "5,x"}, {"--prompt '5,x'", "numbers from 0 to 1048576"});
  refused({"-n", ""}, {"--new ''"});
  refused({"-b", "0"}, {"--batch '0'", "numbers from 1 to 4096"});
  refused({"-d", "-1"}, {"--depth '-1'"});
  refused({"--both", "5"}, {"--both '5'", "512+128"});
  refused({"--both", "5+1,"}, {"--both '5+1,'", "512+128"});
  refused({"--both", "5+0"}, {"--both '0'", "numbers from 1"});
  refused({"-p", "0", "-n", "0"}, {"nothing to measure"});
  check_refused("throughput", {"-r", "0"}, {"--repetitions 0"});
  refused({"-o", "xml"}, {"--output 'xml'", "md, csv or json"});
}

}  // namespace test_throughput
