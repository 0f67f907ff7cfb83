// opcheck, run as a user runs it.
#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/support.hpp"
#include "tessera/graph/op.hpp"

namespace test_opcheck {

using namespace tessera::internal;
using nlohmann::json;

namespace {

struct Run {
  int status;
  std::string out, err;
};

/// `arguments` in shell syntax; `environment` before them.
Run opcheck(const std::string& arguments, const std::string& environment = "") {
  const TempDir folder;
  const std::string command = fmt::format("{} '{}' {} >'{}' 2>'{}'", environment, TESSERA_BIN_DIR "/opcheck", arguments,
                                          (folder / "out").string(), (folder / "err").string());
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, read_text(folder / "out"), read_text(folder / "err")};
}

/// The JSON output of a run that must succeed.
json parsed(const std::string& arguments) {
  const Run run = opcheck(arguments + " --format json");
  INFO(arguments << ": " << run.err);
  REQUIRE(run.status == 0);
  return json::parse(run.out);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// The device for tests of programs.
std::string device() { return test_device_name().starts_with("cuda") ? test_device_name() : "cpu"; }

constexpr ElementType types[] = {
#define TYPE(name, ...) ElementType::name,
#include "tessera/graph/types.def"
};
constexpr Op ops[] = {
#define UNARY(name, ...) Op::name,
#define BINARY(name, ...) Op::name,
#define TERNARY(name, ...) Op::name,
#define REDUCTION(name, ...) Op::name,
#define SCAN(name, ...) Op::name,
#define STRUCTURAL(name, ...) Op::name,
#include "tessera/graph/ops.def"
};

}  // namespace

TEST_CASE("opcheck has cases of every op, for the types in the table", "[programs]") {
  const json list = parsed("list").at("ops");
  REQUIRE(list.size() == std::size(ops));
  for (std::size_t i = 0; i < std::size(ops); ++i) {
    const json& row = list[i];
    INFO(row.dump());
    CHECK(row.at("op") == name(ops[i]));
    CHECK(row.at("meaning") == info(ops[i]).meaning);
    CHECK(row.at("cases") > 0);
    CHECK_FALSE(row.at("types").empty());
    if (info(ops[i]).group == OpGroup::structural) continue;
    json taken = json::array();
    for (const ElementType type : types)
      if (accepts(ops[i], type)) taken.push_back(name(type));
    CHECK(row.at("types") == taken);
  }
  const Run run = opcheck("list --op mma");
  CHECK(run.status == 0);
  CHECK(lines_of(run.out).size() == 1);
  CHECK(says(lines_of(run.out).at(0), {"mma ", "structural ", " cases ", "f32 f64 f16 bf16 tf32 f8e4m3 f8e5m2 i8 u8"}));
}

TEST_CASE("opcheck tests an op on every type", "[programs]") {
  const Run run = opcheck("test --op add --device " + device());
  INFO(run.out << run.err);
  CHECK(run.status == 0);
  const std::vector<std::string> lines = lines_of(run.out);
  REQUIRE(lines.size() == 2 + std::size(types));
  CHECK(says(lines[0], {"device: ", device()}));
  for (std::size_t i = 0; i < std::size(types); ++i) {
    const char* status = accepts(Op::add, types[i]) ? " ok" : " not of this type";
    CHECK(lines[i + 1].starts_with("add "));
    CHECK(lines[i + 1].ends_with(status));
    CHECK(says(lines[i + 1], {name(types[i])}));
  }
  const int cases = parsed("list --op add").at("ops").at(0).at("cases");
  CHECK(lines.back() == fmt::format("{} cases, 0 failures", cases));
}

// Each of opcheck's matmuls states whether it is warp-specialized on sm_90a, or why not.
TEST_CASE("opcheck reports where a matmul is not warp-specialized as it should be", "[programs]") {
  for (const char* type : {"f32", "tf32", "f16", "bf16"}) {
    const Run run = opcheck(fmt::format("test --op mma --type {}", type));
    INFO(run.out << run.err);
    CHECK(run.status == 0);
  }
}

TEST_CASE("opcheck's results as JSON", "[programs]") {
  const json test = parsed("test --type u8 --device " + device());
  CHECK(says(test.at("device").get<std::string>(), {device()}));
  CHECK(test.at("failures") == 0);
  int cases = 0;
  std::set<std::string> names;
  for (const json& row : test.at("ops")) {
    names.insert(row.at("op"));
    REQUIRE(row.at("types").size() == 1);
    const json& outcome = row.at("types").at("u8");
    CHECK(outcome.at("failures") == 0);
    CHECK(outcome.at("cases") > 0);
    cases += outcome.at("cases").get<int>();
  }
  CHECK(test.at("cases") == cases);
  // Those alone that are of this type.
  CHECK(names.contains("cast"));
  CHECK(!names.contains("exp"));
  CHECK(names.size() < std::size(ops));

  const json perf = parsed("perf --op sum --type i32 --device " + device());
  REQUIRE(perf.at("rows").size() == 1);
  const json& row = perf.at("rows").at(0);
  CHECK(row.at("op") == "sum");
  CHECK(row.at("type") == "i32");
  CHECK(row.at("ms") > 0);
  CHECK(row.at("rate") > 0);
  CHECK(row.at("unit") == "GB/s");
}

TEST_CASE("opcheck rejects unknown names, and lists the known ones", "[programs]") {
  const auto refused = [](const std::string& arguments, std::initializer_list<std::string_view> words) {
    const Run run = opcheck(arguments);
    INFO(arguments << ": " << run.out << run.err);
    CHECK(run.status == 2);
    CHECK(run.out.empty());
    CHECK(run.err.ends_with('\n'));
    CHECK(says(run.err.substr(0, run.err.size() - 1), words));
  };
  refused("", {"opcheck: error: ", "test", "perf", "list", "coverage"});
  refused("test --op exp --type i32", {"exp is not of type i32", "opcheck list"});
  refused("coverage --op exp", {"every op", "no options"});
  refused("guess", {"'guess'", "test", "perf", "list", "coverage"});
  refused("test --op plus", {"no op 'plus'", "add", "require"});
  refused("list --type f128", {"no element type 'f128'", "f32", "pred"});
  refused("test --device tpu", {"no device 'tpu'", "cpu", "cuda", "emulated"});
  refused("list --format xml", {"no format 'xml'", "table", "json"});
  refused("test --offset 1", {"--offset"});
  refused("perf --device emulated", {"the emulator's times mean nothing"});
  refused("test --share 0", {"--share 0"});
  refused("perf --op require", {"no time of their own"});
}

TEST_CASE("opcheck tests generated code, if the emulator is available", "[emulator]") {
  const std::string arguments = "test --op modulo --type i64 --device emulated";
#ifdef TESSERA_HAS_EMULATOR
  const Run right = opcheck(arguments);
  INFO(right.out << right.err);
  CHECK(right.status == 0);
  CHECK(lines_of(right.out).back().ends_with(" cases, 0 failures"));
  const Run wrong = opcheck(arguments, "env PATH=/nonexistent");  // no compiler
  CHECK(wrong.status == 1);
  CHECK(wrong.out.find("modulo         i64   FAIL  7 of 7; [8,64] of [16,128], dense: ") != wrong.out.npos);
  CHECK(lines_of(wrong.out).back() == "7 cases, 7 failures");
  CHECK(lines_of(opcheck(arguments + " --share 3").out).back() == "3 cases, 0 failures");
#else
  const Run run = opcheck(arguments);
  CHECK(run.status == 2);
  CHECK(says(run.err.substr(0, run.err.size() - 1), {"--device emulated", "Boost.Context"}));
#endif
}

TEST_CASE("docs/ops.md is what opcheck makes, and the page of coverage has every GPU whose results are kept", "[programs]") {
  const Run run = opcheck("page");
  CHECK(run.status == 0);
  const std::vector<std::string> made = lines_of(run.out);
  const std::vector<std::string> kept = lines_of(read_text(TESSERA_SOURCE_DIR "/docs/ops.md"));
  REQUIRE(made.size() == kept.size());
  for (std::size_t i = 0; i < made.size(); ++i) REQUIRE(made[i] == kept[i]);

  const Run coverage = opcheck("coverage");
  CHECK(coverage.status == 0);
  CHECK(coverage.out.find(" CUDA, h100 | CUDA, h200 |\n") != std::string::npos);
  const std::vector<std::string> lines = lines_of(coverage.out);
  // The first GPU has run every case; the others none that fail.
  CHECK(std::ranges::count_if(lines, [](const std::string& line) {
          return line.find("| every case | ok | ") != line.npos && line.find(" fail") == line.npos;
        }) == std::ssize(ops));
}

}  // namespace test_opcheck
