// The profiler on the host: what is recorded, how a trace and a table show it, and bounds.
#include <algorithm>
#include <fstream>
#include <thread>

#include "jit/compile/compiler.hpp"
#include "jit/options/options.hpp"
#include "jit/profile/profile.hpp"
#include "jit/profile/profiler.hpp"
#include "jit/profile/recorder.hpp"
#include "jit/profile/table.hpp"
#include "jit/profile/trace_json.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/support.hpp"
#include "support/trace_check.hpp"
#include "tessera/tensors.hpp"
#include "tessera/tessera.hpp"

namespace test_profile {

using namespace tessera::internal;
using namespace tessera::internal::profile;
using nlohmann::json;
using trace_check::events;
using trace_check::faults;

namespace {

constexpr unsigned line_of_doubled = __LINE__ + 2;
const auto& doubled() {
  static const auto doubled = kernel("doubled", [](In<f32, 1> x, Out<f32, 1> y) {
    Index i = blocks(cdiv(y.extent(0), 64));
    store(y, {i}, load(x, {i}, {64}) * 2);
  });
  return doubled;
}

/// The trace of an action, which the validator has found right.
template <class Action>
json trace_of(Action&& action, const Recorder::Limits& limits = {}) {
  Recorder recorder(limits);
  {
    const Recording recording(recorder);
    action();
  }
  const std::string text = trace_json(recorder.trace());
  CHECK(faults(text) == std::vector<std::string>());
  return json::parse(text);
}

std::vector<std::string> names(const std::vector<json>& events) {
  std::vector<std::string> names;
  for (const json& event : events) names.push_back(event["name"]);
  return names;
}

bool contains(const json& outer, const json& inner) {
  const auto begin = [](const json& event) { return trace_check::nanoseconds(event["ts"]); };
  const auto end = [&](const json& event) { return begin(event) + trace_check::nanoseconds(event["dur"]); };
  return outer["tid"] == inner["tid"] && begin(outer) <= begin(inner) && end(inner) <= end(outer);
}

std::vector<Device> host_devices() {
  std::vector<Device> devices{Device::cpu()};
#ifdef TESSERA_HAS_EMULATOR
  devices.push_back(emulated_device());
#endif
  return devices;
}

}  // namespace

TEST_CASE("a trace has launches, compilations and copies, with the author's names and lines", "[jit][profile]") {
  for (const Device& device : host_devices()) {
    INFO(device.name());
    const auto made = kernel("traced", [](In<f32, 1> x, Out<f32, 1> y) {
      Index i = blocks(cdiv(y.extent(0), 64));
      store(y, {i}, load(x, {i}, {64}) + 1);
    });
    const Tensor<f32, 1> x(device, {1000}), y(device, {1000});
    const json trace = trace_of([&] {
      x.copy_from(std::vector<float>(1000, 3));
      launch(device.stream(), made, x, y);
      launch(device.stream(), made, x, y);
      CHECK(y.to_vector().back() == 4);
    });
    const std::vector<json> kernels = events(trace, "X", "kernel"), copies = events(trace, "X", "copy");
    REQUIRE(names(kernels) == std::vector<std::string>{"traced", "traced"});
    const json& arguments = kernels[0]["args"];
    CHECK(arguments["line"].get<std::string>().find("test_profile.cpp:") != std::string::npos);
    CHECK(arguments["grid"] == json::array({16}));
    CHECK(arguments["bytes"] == 8000);
    CHECK(arguments["launch"] == 1);
    CHECK(kernels[1]["args"]["launch"] == 2);
    const std::vector<json> compiled = events(trace, "X", "compile");
    CHECK(std::ranges::count(names(compiled), "compile traced") == (device.info().arch ? 2 : 1));
    REQUIRE(copies.size() == 2);
    CHECK(copies[0]["args"]["bytes"] == 4000);
  }
}

TEST_CASE("a trace names the line of kernel(...)", "[jit][profile]") {
  const Device device = Device::cpu();
  const Tensor<f32, 1> x(device, {64}), y(device, {64});
  const json trace = trace_of([&] { launch(device.stream(), doubled(), x, y); });
  const std::string line = events(trace, "X", "kernel").at(0)["args"]["line"];
  CHECK(line == fmt::format("tests/jit/test_profile.cpp:{}", line_of_doubled));
}

TEST_CASE("recorded launches appear by name in their graph", "[jit][profile]") {
  for (const Device& device : host_devices()) {
    const Tensor<f32, 1> x(device, {640}), y(device, {640});
    Sequence sequence(device);
    sequence.add(doubled(), x, y);
    sequence.add(doubled(), y, x);
    sequence.run(device.stream());
    const json trace = trace_of([&] {
      const CapturedGraph graph = sequence.record(device.stream());
      device.stream().launch(graph);
      device.stream().launch(graph);
    });
    const std::vector<json> graphs = events(trace, "X", "graph"), kernels = events(trace, "X", "kernel");
    REQUIRE(graphs.size() == 2);
    REQUIRE(names(kernels) == std::vector<std::string>(4, "doubled"));
    CHECK(graphs[1]["args"]["launches"] == 2);
    CHECK((contains(graphs[0], kernels[1]) && contains(graphs[1], kernels[2]) && !contains(graphs[0], kernels[2])));
  }
}

TEST_CASE("a compilation says whether the code was cached, and its registers", "[jit][profile]") {
  try {
    Nvrtc::instance();
  } catch (const Error& absent) {
    WARN("skipped: " << absent.what());
    return;
  }
  const Executable executable(doubled().graph());
  const json trace = trace_of([&] {
    for (int i = 0; i < 2; ++i) compile_kernel(executable.graph(), dense_variant(executable.graph()), Arch::sm_90a);
  });
  const std::vector<json> compiled = events(trace, "X", "compile");
  REQUIRE(names(compiled) == std::vector<std::string>(2, "compile doubled"));
  CHECK(compiled[1]["args"]["how"] == "cached");
  CHECK(compiled[1]["args"]["registers"] > 0);
}

TEST_CASE("a tensor program's kernels are in the trace", "[jit][profile]") {
  const Device device = Device::cpu();
  const Tensor<f32, 2> x = device.tensor<f32>({8, 8});
  x.copy_from(std::vector<float>(64, 1));
  const json trace = trace_of([&] { (void)tile(x).gelu().run(); });
  CHECK(!events(trace, "X", "kernel").empty());
}

#ifdef TESSERA_HAS_EMULATOR
TEST_CASE("a persistent kernel lists its launches as phases", "[jit][profile]") {
  const Device device = emulated_device();
  const Tensor<f32, 1> x(device, {128}), y(device, {128});
  Sequence sequence(device);
  sequence.add(doubled(), x, y);
  sequence.add(doubled(), y, x);
  const CapturedGraph graph = sequence.persistent("step");
  const json trace = trace_of([&] { device.stream().launch(graph); });
  const std::vector<json> kernels = events(trace, "X", "kernel");
  REQUIRE(names(kernels) == std::vector<std::string>{"step"});
  const std::string phase = fmt::format("doubled (tests/jit/test_profile.cpp:{})", line_of_doubled);
  CHECK(kernels[0]["args"]["phases"] == json::array({phase, phase}));
}
#endif

TEST_CASE("each thread has a track, and workers have their parts", "[jit][profile]") {
  const Device device = Device::cpu();
  const Tensor<f32, 1> warm(device, {64}), of(device, {64});
  launch(device.stream(), doubled(), warm, of);
  const json trace = trace_of([&] {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        const Tensor<f32, 1> x(device, {1 << 16}), y(device, {1 << 16});
        for (int i = 0; i < 5; ++i) launch(device.stream(), doubled(), x, y);
      });
  });
  std::set<std::int64_t> tracks, numbers;
  std::map<std::int64_t, std::int64_t> track_of;  // by the launch
  for (const json& event : events(trace, "X", "kernel")) {
    tracks.insert(event["tid"].get<std::int64_t>());
    numbers.insert(event["args"]["launch"].get<std::int64_t>());
    track_of[event["args"]["launch"].get<std::int64_t>()] = event["tid"].get<std::int64_t>();
  }
  CHECK(tracks.size() == 3);
  CHECK(numbers.size() == 15);
  for (const json& event : events(trace, "X", "part")) {
    CHECK(event["name"] == "doubled");
    CHECK(numbers.contains(event["args"]["launch"].get<std::int64_t>()));
    CHECK(track_of[event["args"]["launch"].get<std::int64_t>()] != event["tid"].get<std::int64_t>());
  }
}

TEST_CASE("the latest events are kept, and the others counted", "[jit][profile]") {
  const Device device = Device::cpu();
  const Tensor<f32, 1> x(device, {64}), y(device, {64});
  launch(device.stream(), doubled(), x, y);
  Recorder recorder({.events = 10});
  {
    const Recording recording(recorder);
    for (int i = 0; i < 25; ++i) launch(device.stream(), doubled(), x, y);
  }
  const profile::Trace trace = recorder.trace();
  REQUIRE(trace.events.size() == 10);
  CHECK(trace.dropped == 15);
  CHECK(trace.events.front().number == 16);
  REQUIRE(trace.totals.size() == 1);
  CHECK(trace.totals[0].count == 25);
  const std::string text = trace_json(trace);
  CHECK(faults(text) == std::vector<std::string>());
  CHECK(text.find("15 earlier events were dropped") != std::string::npos);

  // By time.
  Recorder late({.events = 100, .seconds = 5});
  const auto subject = named("work");
  const Time second = 1'000'000'000;
  for (Time at = 1; at <= 20; ++at)
    late.add({.kind = Kind::copy, .subject = subject, .begin = at * second, .end = at * second + 1});
  // A device tells late what it did early.
  late.add({.kind = Kind::copy, .subject = subject, .begin = 2 * second, .end = 3 * second, .device = 0});
  CHECK(late.trace().events.size() == 6);
  CHECK(late.trace().dropped == 15);
  CHECK(late.trace().totals.size() == 2);
}

TEST_CASE("overlapping launches of a stream are on tracks of their own", "[jit][profile]") {
  Recorder recorder({});
  recorder.set_device(0, {.name = "cuda:0"});
  const auto add = [&](const char* name, Time begin, Time end, std::uint64_t stream = 7) {
    recorder.add({.subject = named(name), .begin = begin, .end = end, .device = 0, .lane = stream});
  };
  const Time at = now();
  add("a", at, at + 100), add("b", at + 90, at + 200), add("c", at + 190, at + 300), add("d", at + 300, at + 310);
  add("inside", at + 20, at + 30, 8), add("around", at + 10, at + 50, 8);
  // On a thread, what contains another event stays above it; parts of loops of other threads may overlap otherwise.
  const auto add_on_thread = [&](const char* name, Time begin, Time end) {
    recorder.add({.kind = Kind::part, .subject = named(name), .begin = begin, .end = end, .lane = 3});
  };
  add_on_thread("inner", at, at + 20), add_on_thread("outer", at, at + 100), add_on_thread("part", at + 90, at + 120);
  const std::string text = trace_json(recorder.trace());
  CHECK(faults(text) == std::vector<std::string>());
  std::map<std::string, std::int64_t> tracks;
  const json trace = json::parse(text);
  for (const json& event : events(trace, "X")) tracks[event["name"]] = event["tid"].get<std::int64_t>();
  CHECK((tracks["a"] != tracks["b"] && tracks["a"] == tracks["c"] && tracks["c"] == tracks["d"]));
  CHECK(tracks["inside"] != tracks["around"]);
  CHECK((tracks["outer"] == tracks["inner"] && tracks["outer"] != tracks["part"]));
  CHECK(text.find("stream 7, overlapping") != std::string::npos);
}

TEST_CASE("an arrow leads from a call to its launch, and never back in time", "[jit][profile]") {
  Recorder recorder({});
  recorder.set_device(0, {.name = "cuda:0"});
  const Time at = now();
  const auto add = [&](Kind kind, Time begin, int device, std::uint64_t number) {
    recorder.add({.kind = kind,
                  .subject = named("k"),
                  .begin = begin,
                  .end = begin + 10,
                  .device = device,
                  .lane = 5,
                  .number = number});
  };
  add(Kind::launch, at, on_host, 1), add(Kind::kernel, at + 20, 0, 1);
  add(Kind::launch, at + 40, on_host, 2), add(Kind::kernel, at + 35, 0, 2);  // the clocks differ
  add(Kind::graph, at + 60, on_host, 3), add(Kind::kernel, at + 70, 0, 3), add(Kind::kernel, at + 80, 0, 3);
  add(Kind::launch, at + 90, on_host, 4);  // what it launched is not known
  const std::string text = trace_json(recorder.trace());
  CHECK(faults(text) == std::vector<std::string>());
  std::vector<int> begun, ended;
  for (const json& event : events(json::parse(text), "s")) begun.push_back(event["id"].get<int>());
  for (const json& event : events(json::parse(text), "f")) ended.push_back(event["id"].get<int>());
  CHECK((begun == std::vector<int>{1, 3} && ended == begun));
}

TEST_CASE("names and files may have any character", "[jit][profile]") {
  Recorder recorder({});
  const std::string name = "a \"b\" \\ \n\t\x01 \xc3\xa9";
  recorder.add({.subject = std::make_shared<const Subject>(Subject{.name = name, .file = "C:\\\"x\".cpp", .line = 3}),
                .begin = now(),
                .end = now() + 5});
  const std::string text = trace_json(recorder.trace());
  CHECK(faults(text) == std::vector<std::string>());
  const json event = events(json::parse(text), "X").at(0);
  CHECK(event["name"] == name);
  CHECK(event["args"]["line"] == "C:\\\"x\".cpp:3");
}

TEST_CASE("bytes and flops follow from the graph and the arguments", "[jit][profile]") {
  const Device device = Device::cpu();
  const auto work_of = [&](const auto& kernel, const auto&... arguments) {
    Recorder recorder({});
    const Recording recording(recorder);
    launch(device.stream(), kernel, arguments...);
    for (const profile::Event& event : recorder.trace().events)
      if (event.kind == Kind::kernel) return event.details.work;
    return Work{};
  };
  SECTION("a matmul whose loop has a known count, with edges") {
    const auto matmul = kernel("matmul", [](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 2> y) {
      auto [i, j] = blocks(cdiv(y.extent(0), 16), cdiv(y.extent(1), 32));
      Var sums = zeros<f32>({16, 32});
      for (Index k : range(cdiv(x.extent(1), 64)))
        sums = mma(load(x, {i, k}, {16, 64}), load(w, {k, j}, {64, 32}), sums);
      store(y, {i, j}, sums);
    });
    const Tensor<bf16, 2> x(device, {40, 100}), w(device, {100, 70});
    const Tensor<f32, 2> y(device, {40, 70});
    const Work work = work_of(matmul, x, w, y);
    CHECK(work.bytes == 2 * (40 * 100 + 100 * 70) + 4 * 40 * 70);
    CHECK(!work.bytes_at_most);
    CHECK(work.flops == 2.0 * (3 * 16) * (3 * 32) * (2 * 64));  // of whole tiles
    CHECK(work.macs16 == work.flops / 2);
  }
  SECTION("f32 costs more than 16 bits") {
    const auto product = kernel("product", [](In<f32, 2> x, Out<f32, 2> y) {
      Tile all = load(x, {0, 0}, {16, 16});
      store(y, {0, 0}, mma(all, all, zeros<f32>({16, 16})));
    });
    const Tensor<f32, 2> x(device, {16, 16}), y(device, {16, 16});
    const Work work = work_of(product, x, y);
    CHECK(work.flops == 2 * 16 * 16 * 16);
    CHECK(work.macs16 == 16 * work.flops / 2);
  }
  SECTION("few rows of a large tensor") {
    const auto pick = kernel("pick", [](In<f32, 2> table, In<i32, 1> rows, Out<f32, 2> y) {
      Index i = blocks(cdiv(rows.extent(0), 4));
      store(y, {i, 0}, gather(table, load(rows, {i}, {4}), {0}, {8}));
    });
    const Tensor<f32, 2> table(device, {1000, 8}), y(device, {4, 8});
    const Tensor<i32, 1> rows(device, {4});
    rows.copy_from(std::vector<i32>{1, 2, 3, 4});
    CHECK(work_of(pick, table, rows, y).bytes == 4 * 8 * 4 + 4 * 4 + 4 * 8 * 4);
  }
  SECTION("a count that only the device knows") {
    const auto partly = kernel("partly", [](In<f32, 2> x, In<i32, 1> count, Out<f32, 2> y) {
      Var sums = zeros<f32>({1, 8});
      for (Index i : range(item(load(count, {0}, {1})))) sums = sums + load(x, {i, 0}, {1, 8});
      store(y, {0, 0}, sums);
    });
    const Tensor<f32, 2> x(device, {100, 8}), y(device, {1, 8});
    const Tensor<i32, 1> count(device, {1});
    count.copy_from(std::vector<i32>{3});
    const Work work = work_of(partly, x, count, y);
    CHECK(work.bytes_at_most);
    CHECK(work.bytes == 100 * 8 * 4 + 4 + 8 * 4);
  }
}

TEST_CASE("a table has kernels by time, with shares of the device's limits", "[jit][profile]") {
  Recorder recorder({.events = 0});
  recorder.set_device(0, {.name = "cuda:0 (a GPU)", .bytes_per_second = 1e12, .macs16_per_second = 1e14});
  const auto add = [&](const char* name, Time ns, const Work& work, int device = 0) {
    recorder.add({.subject = std::make_shared<const Subject>(Subject{.name = name, .file = "k.cpp", .line = 7}),
                  .begin = 0,
                  .end = ns,
                  .device = device,
                  .details = {.registers = 40, .shared_bytes = 1024, .work = work}});
  };
  add("small", 1000, {.bytes = 500'000});
  for (int i = 0; i < 3; ++i) add("large", 2000, {.bytes = 1'000'000, .flops = 1e8, .macs16 = 5e7});
  add("unknown", 500, {});
  add("loops", 600, {.bytes = 60'000, .bytes_at_most = true});
  recorder.add({.kind = Kind::compile, .subject = named("large"), .begin = 0, .end = 3'000'000});
  const std::string text = table_text(recorder.trace());
  INFO(text);
  const std::vector<std::string> lines = [&] {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }();
  REQUIRE(lines.size() == 9);
  CHECK(lines[1] == "cuda:0 (a GPU): 6 launches of 4 kernels, 0.008 ms");
  const auto has = [&](std::size_t line, std::initializer_list<std::string_view> parts) {
    return says(lines[line], parts);
  };
  CHECK(has(3, {"0.006", "74 %", " 3 ", "2.00", "500.0", "50 %", "50.000", "25 %", " 40 ", "1024", "large  k.cpp:7"}));
  CHECK(has(4, {"0.001", "12 %", "small", "500.0", "50 %"}));
  CHECK(has(5, {"loops", "<100.0", "<10 %"}));
  CHECK(has(6, {"unknown", "-       -"}));
  CHECK(has(7, {"<: at most"}));
  CHECK(lines[8] == "kernels made: 1, 3.000 ms");
}

TEST_CASE("the validator finds each fault that is planted in a trace", "[jit][profile]") {
  const auto sound = [] {
    Recorder recorder({.events = 5});
    recorder.set_device(0, {.name = "cuda:0"});
    const Time at = now();
    for (int i = 0; i < 3; ++i) recorder.add({.subject = named("early"), .begin = at, .end = at + 1, .lane = 3});
    recorder.add({.kind = Kind::token, .subject = named("append"), .begin = at, .end = at + 900, .lane = 5});
    recorder.add(
        {.kind = Kind::launch, .subject = named("k"), .begin = at + 10, .end = at + 20, .lane = 5, .number = 1});
    recorder.add({.subject = named("k"), .begin = at + 30, .end = at + 90, .device = 0, .lane = 7, .number = 1});
    recorder.add({.subject = named("l"), .begin = at + 90, .end = at + 95, .device = 0, .lane = 7});
    return json::parse(trace_json(recorder.trace()));
  }();
  REQUIRE(faults(sound.dump()) == std::vector<std::string>());
  const auto planted = [&](const auto& change) {
    json bad = sound;
    for (json& event : bad["traceEvents"]) change(event);
    const std::vector<std::string> found = faults(bad.dump());
    return found.empty() ? std::string("(none)") : found.front();
  };
  const auto is = [](const json& event, const char* phase, const char* name, const char* category = "") {
    return event["ph"] == phase && event["name"] == name && (!*category || event.value("cat", "") == category);
  };
  CHECK(faults("{") == std::vector<std::string>{"no trace"});
  CHECK(faults("{}") == std::vector<std::string>{"no trace"});
  CHECK(says(planted([&](json& e) {
               if (is(e, "X", "l")) e["ph"] = "Y";
             }),
             {"phase 'Y'"}));
  CHECK(says(planted([&](json& e) {
               if (is(e, "X", "l")) e["name"] = "";
             }),
             {"without a name"}));
  CHECK(says(planted([&](json& e) {
               if (is(e, "X", "l")) e.erase("pid");
             }),
             {"in no process"}));
  CHECK(says(planted([&](json& e) {
               if (is(e, "X", "l")) e.erase("ts");
             }),
             {"no time"}));
  CHECK(says(planted([&](json& e) {
               if (is(e, "X", "l")) e["cat"] = "else";
             }),
             {"no category"}));
  CHECK(says(planted([&](json& e) {
               if (is(e, "X", "l")) e["dur"] = -1;
             }),
             {"no duration"}));
  CHECK(says(planted([&](json& e) {
               if (is(e, "X", "l")) e.erase("args");
             }),
             {"no arguments"}));
  CHECK(says(planted([&](json& e) {
               if (is(e, "M", "process_name")) e["name"] = "other";
             }),
             {"process", "no name"}));
  CHECK(says(planted([&](json& e) {
               if (is(e, "M", "thread_name")) e["tid"] = 99;
             }),
             {"has two names"}));
  CHECK(says(planted([&](json& e) {
               if (is(e, "M", "thread_name")) e["name"] = "other";
             }),
             {"track", "no name"}));
  CHECK(says(planted([&](json& e) {
               if (is(e, "X", "l")) e["ts"] = 0;
             }),
             {"'l' begins before"}));
  CHECK(says(planted([&](json& e) {
               if (is(e, "X", "append")) e["dur"] = 0.015;
             }),
             {"ends after the event"}));
  CHECK(says(planted([&](json& e) {
               if (is(e, "X", "k", "kernel")) e["dur"] = 0.5;
             }),
             {"nested", "device"}));
  CHECK(says(planted([&](json& e) {
               if (is(e, "f", "launch")) e["ph"] = "s";
             }),
             {"2 beginnings and 0 ends"}));
  CHECK(says(planted([&](json& e) {
               if (is(e, "f", "launch")) e["ts"] = 0.0;
             }),
             {"leads back in time"}));
  CHECK(says(planted([&](json& e) {
               if (is(e, "s", "launch")) e["tid"] = 12345;
             }),
             {"at no event"}));
  CHECK(says(planted([&](json& e) {
               if (is(e, "M", "dropped_events")) e["args"]["count"] = 1;
             }),
             {"1 dropped", "2 in"}));
}

TEST_CASE("Perfetto reads a trace as it is", "[jit][profile]") {
  const Device device = Device::cpu();
  const Tensor<f32, 1> x(device, {64}), y(device, {64});
  const TempDir folder;
  const std::string file = (folder / "trace.json").string();
  write_text(file, trace_of([&] {
                     for (int i = 0; i < 3; ++i) launch(device.stream(), doubled(), x, y);
                   }).dump());
  const auto count = trace_check::answer_of_perfetto(
      file, "select count(*) as n from slice where name = \"doubled\" and category = \"kernel\";");
  if (!count) {
    WARN("skipped: there is no trace_processor_shell on the PATH");
    return;
  }
  CHECK(*count == "3\n");
}

TEST_CASE("TESSERA_PROFILE takes a table, a file or both", "[jit][profile]") {
  const auto read = [](const std::string& value) {
    return read_options(
               [&](std::string_view name) {
      return name == "TESSERA_PROFILE" ? value : std::string();
    }).profile;
  };
  CHECK((!read("").table && read("").file.empty()));
  CHECK((read("table").table && read("table").file.empty()));
  CHECK((!read("a/b.json").table && read("a/b.json").file == "a/b.json"));
  CHECK((read("t.json,table").table && read("t.json,table").file == "t.json"));
  CHECK((read("inside:soft*,t.json").inside == "soft*" && read("inside:soft*,t.json").file == "t.json"));
  for (const char* bad : {"tables", "x", ".json", "a.json,b.json", "table,x", "inside:", "inside:a,inside:b", "1"})
    CHECK(says(error_of([&] { read(bad); }), {"TESSERA_PROFILE=" + std::string(bad), "choose from table, FILE.json"}));
}

TEST_CASE("a launch has the same results and text while it is profiled", "[jit][profile]") {
  const Device device = Device::cpu();
  const auto text = [] { return cuda_source(doubled().graph(), Arch::sm_90a); };
  const std::string before = text();
  const Tensor<f32, 1> x(device, {100}), y(device, {100}), z(device, {100});
  x.copy_from(std::vector<float>(100, 1.5f));
  launch(device.stream(), doubled(), x, y);
  (void)trace_of([&] {
    launch(device.stream(), doubled(), x, z);
    CHECK(text() == before);
  });
  CHECK(text() == before);
  CHECK(y.to_vector() == z.to_vector());
  CHECK(active() == nullptr);
}

}  // namespace test_profile
