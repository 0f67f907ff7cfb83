// The profiler as users start it: TESSERA_PROFILE, and generate --profile.
#include <fmt/format.h>

#include "support/catch.hpp"
#include "support/running.hpp"
#include "support/support.hpp"
#include "support/trace_check.hpp"
#include "tessera/profile.hpp"
#include "tessera/tessera.hpp"

namespace test_profile_program {

using nlohmann::json;
using trace_check::events;
using trace_check::faults;

namespace {

/// Runs a program on the CPU with variables of the environment.
Run run_with(Arguments variables, const std::string& program, const Arguments& arguments) {
  variables.insert(variables.end(), {"TESSERA_DEVICE=cpu", TESSERA_BIN_DIR "/" + program});
  variables.insert(variables.end(), arguments.begin(), arguments.end());
  return run("/usr/bin/env", variables);
}

const Arguments story{"-n", "6", "--temp", "0", "Once upon a time"};
Arguments story_with(Arguments more) {
  more.insert(more.end(), story.begin(), story.end());
  return more;
}

std::size_t lines_with(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; ++at) ++count;
  return count;
}

}  // namespace

TEST_CASE("generate --profile writes a trace and the same text", "[programs][profile]") {
  const TempDir folder;
  const std::string file = (folder / "trace.json").string();
  const Run plain = run_with({}, "generate", story),
            profiled = run_with({}, "generate", story_with({"--profile", file}));
  INFO(profiled.err);
  REQUIRE((plain.status == 0 && profiled.status == 0));
  CHECK(plain.out == profiled.out);
  const std::string text = read_text(file);
  CHECK(faults(text) == std::vector<std::string>());
  const json trace = json::parse(text);
  std::map<std::string, int> tokens;
  for (const json& event : events(trace, "X", "token")) {
    tokens[event["name"]] += event["args"]["tokens"].get<int>();
    CHECK(event["dur"] > 0);
  }
  CHECK((tokens["append"] == 4 + 5 && tokens["sample"] == 6));
  bool has_head = false;
  for (const json& event : events(trace, "X", "kernel")) {
    has_head |= event["name"] == "greedy_head";
    CHECK(event["args"]["line"].get<std::string>().starts_with("src/model/"));
  }
  CHECK(has_head);
  // It is the only file: none is left from writing it.
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), std::filesystem::directory_iterator()) == 1);
}

TEST_CASE("--profile takes what TESSERA_PROFILE takes, and goes before it", "[programs][profile]") {
  const TempDir folder;
  const std::string file = (folder / "trace.json").string();
  const Run table = run_with({"TESSERA_PROFILE=" + file}, "generate", story_with({"--profile", "table"}));
  CHECK(table.status == 0);
  CHECK(table.err.find("launches of") != std::string::npos);
  CHECK(!std::filesystem::exists(file));
  const Run refused = run_with({}, "generate", story_with({"--profile", "tables"}));
  CHECK((refused.status == 2 && refused.out.empty()));
  CHECK(refused.err ==
        "generate: error: --profile=tables: choose from table, FILE.json and inside:KERNEL, each at most once\n");
}

TEST_CASE("any program prints a table at its end, on stderr", "[programs][profile]") {
  const Run plain = run_with({}, "03_layer_norm", {}),
            profiled = run_with({"TESSERA_PROFILE=table"}, "03_layer_norm", {});
  CHECK(profiled.status == 0);
  CHECK(profiled.out == plain.out);
  INFO(profiled.err);
  CHECK(profiled.err.find("tessera: profile of ") != std::string::npos);
  CHECK(profiled.err.find("4 launches of 1 kernels") != std::string::npos);
  CHECK(profiled.err.find("layer_norm  samples/03_layer_norm.cpp:20\n") != std::string::npos);
  CHECK(profiled.err.find("kernels made: 4") != std::string::npos);
}

TEST_CASE("a program says at its start that its trace cannot be written", "[programs][profile]") {
  const Run absent = run_with({"TESSERA_PROFILE=/nonexistent/trace.json"}, "generate", story);
  CHECK((absent.status == 2 && absent.out.empty()));
  CHECK(absent.err ==
        "generate: error: TESSERA_PROFILE: cannot write /nonexistent/trace.json: No such file or directory\n");
  const Run wrong = run_with({"TESSERA_PROFILE=trace"}, "03_layer_norm", {});
  CHECK(wrong.status != 0);
  CHECK(wrong.err.find("TESSERA_PROFILE=trace: choose from table, FILE.json and inside:KERNEL, each at most once") !=
        std::string::npos);
}

TEST_CASE("a trace that is lost at the end costs no result", "[programs][profile]") {
  const TempDir folder;
  const std::string file = (folder / "full.json").string();
  std::filesystem::create_symlink("/dev/full", file);
  const Run result = run_with({"TESSERA_PROFILE=" + file}, "generate", story);
  CHECK(result.status == 0);
  CHECK(result.out.starts_with("Once upon a time"));
  CHECK(result.err.find("the profile is lost: cannot write") != std::string::npos);
}

TEST_CASE("a program that fails writes its trace, too", "[programs][profile]") {
  const TempDir folder;
  const std::string file = (folder / "trace.json").string();
  write_text(file, "an older trace");
  const Run refused = run_with({"TESSERA_PROFILE=" + file}, "generate", {"--no-such-option"});
  CHECK(refused.status == 2);
  CHECK(read_text(file) == "an older trace");
  const Run failed = run_with({"TESSERA_PROFILE=" + file}, "generate", {"--model", "/nonexistent", "Once"});
  CHECK(failed.status == 2);
  CHECK(faults(read_text(file)) == std::vector<std::string>());
}

TEST_CASE("the emulator's launches are in the trace of the program that opens it", "[programs][profile]") {
  if (!std::filesystem::exists(TESSERA_BIN_DIR "/libtessera_emulator.so")) {
    WARN("skipped: there is no emulator");
    return;
  }
  const TempDir folder;
  const std::string file = (folder / "trace.json").string();
  const Run emulated = run(
      "/usr/bin/env", {"TESSERA_DEVICE=emulated", "TESSERA_PROFILE=table," + file, TESSERA_BIN_DIR "/01_vector_add"});
  INFO(emulated.err);
  REQUIRE(emulated.status == 0);
  CHECK(emulated.err.find("emulated sm_90a: ") != std::string::npos);
  const std::string text = read_text(file);
  CHECK(faults(text) == std::vector<std::string>());
  CHECK(!events(json::parse(text), "X", "kernel").empty());
  CHECK(lines_with(emulated.err, "tessera: profile of") == 1);  // the emulator's library writes none
}

TEST_CASE("programs have a sound trace on the tests' device", "[programs][profile]") {
  const std::string device = test_device_name().starts_with("cuda") ? test_device_name() : "cpu";
  const TempDir folder;
  const std::string file = (folder / "trace.json").string();
  const auto traced = [&](const std::string& program, const Arguments& arguments) {
    Arguments all{"TESSERA_DEVICE=" + device, "TESSERA_PROFILE=table," + file, TESSERA_BIN_DIR "/" + program};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Run result = run("/usr/bin/env", all);
    INFO(result.err);
    REQUIRE(result.status == 0);
    const std::string text = read_text(file);
    CHECK(faults(text) == std::vector<std::string>());
    return json::parse(text);
  };
  const bool is_gpu = device.starts_with("cuda");
  for (const json& trace :
       {traced("02_softmax", {}), traced("generate", {"-n", "12", "--temp", "0", "Once upon a time"})}) {
    const std::vector<json> kernels = events(trace, "X", "kernel");
    REQUIRE(!kernels.empty());
    std::size_t with_line = 0;
    for (const json& kernel : kernels) {
      with_line += kernel["args"].contains("line");
      CHECK((kernel["pid"].get<std::int64_t>() >= trace_check::first_device) == is_gpu);
    }
    CHECK(with_line * 10 >= kernels.size() * 9);  // a persistent kernel has phases instead
    if (!is_gpu) continue;
    WARN("clock: " << trace["otherData"]["clock"].get<std::string>());
    CHECK(!events(trace, "s").empty());
    CHECK(!events(trace, "X", "launch").empty());
  }
}

// Run by the test below, with TESSERA_PROFILE=table,FILE.json.
TEST_CASE("flushes its profile", "[.flushes_profile]") {
  using namespace tessera;
  const char* const option = std::getenv("TESSERA_PROFILE");
  REQUIRE(option);
  const std::string file = std::string(option).substr(std::string_view("table,").size());
  const Device device = Device::cpu();
  const auto copy = kernel("copy", [](In<f32, 1> x, Out<f32, 1> y) {
    Index i = blocks(cdiv(y.extent(0), 4));
    store(y, {i}, load(x, {i}, {4}));
  });
  const Tensor<f32, 1> x(device, {64}), y(device, {64});
  CHECK(!std::filesystem::exists(file));
  for (const std::size_t launches : {1u, 2u}) {
    launch(device.stream(), copy, x, y);
    flush_profile();
    const std::string text = read_text(file);
    CHECK(faults(text) == std::vector<std::string>());
    CHECK(events(json::parse(text), "X", "kernel").size() == launches);
    std::filesystem::remove(file);
  }
  // A forked child has a copy of the profile, and leaves it to its parent.
  const pid_t child = ::fork();
  if (child == 0) std::exit(0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(!std::filesystem::exists(file));
  launch(device.stream(), copy, x, y);
}

TEST_CASE("a profile can be written while it goes on, and a forked child writes none", "[programs][profile]") {
  const TempDir folder;
  const std::string file = (folder / "trace.json").string();
  const Run flushed = run_with({"TESSERA_PROFILE=table," + file}, "tessera_tests", {"[.flushes_profile]"});
  INFO(flushed.out + flushed.err);
  CHECK(flushed.status == 0);
  CHECK(events(json::parse(read_text(file)), "X", "kernel").size() == 3);
  CHECK(lines_with(flushed.err, "tessera: profile of") == 1);
}

TEST_CASE("an attached profiler gets ranges without TESSERA_PROFILE", "[programs][profile]") {
  const Run result = run_with({"NVTX_INJECTION64_PATH=" TESSERA_BIN_DIR "/libfake_nvtx.so"}, "03_layer_norm", {});
  CHECK(result.status == 0);
  CHECK(result.err.find("profile of") == std::string::npos);
  CHECK(lines_with(result.err, "NVTX: layer_norm\n") >= 4);
}

}  // namespace test_profile_program
