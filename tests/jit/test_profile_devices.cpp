// The profiler on a GPU: what the host gave to a device and what the device did, by a fake driver and a fake of CUPTI.
#include <dlfcn.h>

#include <algorithm>

#include "fake_cuda/fake_cupti.hpp"
#include "jit/cuda/cuda_profile.hpp"
#include "jit/profile/nvtx.hpp"
#include "jit/profile/profiler.hpp"
#include "jit/profile/trace_json.hpp"
#include "support/catch.hpp"
#include "support/fake_gpu.hpp"
#include "support/stderr.hpp"
#include "support/support.hpp"
#include "support/trace_check.hpp"
#include "tessera/tessera.hpp"

namespace test_profile_devices {

using namespace tessera::internal;
using namespace fake_gpu;
using nlohmann::json;
using profile::Activity;
using profile::Join;
using profile::Planned;
using profile::Recorder;
using profile::Recording;
using trace_check::events;
using trace_check::faults;

namespace {

FakeCupti& new_fake_cupti() {
  static const auto library =
      SharedLibrary::open("the fake of CUPTI", std::vector<std::string>{TESSERA_BIN_DIR "/libfake_cupti.so"});
  FakeCupti& fake = *library.symbol<FakeCupti* (*)()>("fake_cupti")();
  fake = {};
  return fake;
}

std::vector<std::string> cupti_places() { return {TESSERA_BIN_DIR "/libfake_cupti.so"}; }

/// A fake GPU that is profiled.
struct Profiled {
  explicit Profiled(std::vector<std::string> places) : devices(std::move(places)) { machine.profile = &devices; }
  json trace() {
    devices.collect(recorder);
    text = trace_json(recorder.trace());
    CHECK(faults(text) == std::vector<std::string>());
    return json::parse(text);
  }
  Recorder recorder{{}};
  const Recording recording{recorder};
  CudaProfile devices;  // outlives the machine's devices
  Machine machine;
  std::string text;
};

profile::Plan plan_of(std::initializer_list<const char*> entries) {
  std::vector<Planned> plan;
  for (const char* entry : entries) {
    Planned planned{.subject = std::make_shared<const profile::Subject>(
                        profile::Subject{.name = std::string("author's ") + entry, .file = "k.cpp", .line = 3}),
                    .entry = entry};
    planned.details.work.bytes = 100;
    plan.push_back(planned);
  }
  return std::make_shared<const std::vector<Planned>>(plan);
}

Activity kernel_at(const char* name, profile::Time begin, std::uint32_t correlation, std::uint64_t node = 0) {
  return {.name = name, .begin = begin, .end = begin + 5, .correlation = correlation, .node = node};
}

std::vector<std::string> names(const profile::Trace& trace) {
  std::vector<std::string> names;
  for (const profile::Event& event : trace.events) names.push_back(event.subject->name);
  return names;
}
std::vector<std::string> names(const std::vector<json>& events) {
  std::vector<std::string> names;
  for (const json& event : events) names.push_back(event["name"]);
  return names;
}

}  // namespace

TEST_CASE("what a device did gets the names and the numbers of the host's calls", "[jit][profile]") {
  Recorder recorder({});
  Join join;
  // The device is known to answer late, and in any order.
  join.submit(1, plan_of({"a"}));
  join.submit(2, plan_of({"b", "c", "b"}));
  join.add(kernel_at("b", 45, 8, 30));  // on another branch of the graph, so it begins before c
  join.add(kernel_at("b", 40, 8, 10));
  join.add(kernel_at("foreign", 50, 8, 15));
  join.add(kernel_at("c", 55, 8, 20));
  join.add(kernel_at("a", 10, 7));
  join.correlate(7, 1), join.correlate(8, 2);
  join.add(kernel_at("of another library", 5, 99));
  CHECK(join.waiting() == 6);
  join.settle(recorder);
  CHECK(join.waiting() == 0);
  const profile::Trace trace = recorder.trace();
  CHECK(names(trace) == std::vector<std::string>{"author's a", "author's b", "foreign", "author's c", "author's b",
                                                 "of another library"});
  std::vector<std::uint64_t> numbers;
  for (const profile::Event& event : trace.events) numbers.push_back(event.number);
  CHECK(numbers == std::vector<std::uint64_t>{1, 2, 2, 2, 2, 0});
  CHECK((trace.events[0].details.work.bytes == 100 && trace.events[2].details.work.bytes == -1));
  CHECK(trace.events[1].subject->line == 3);
  // A plan is used once.
  join.add(kernel_at("a", 90, 7));
  join.settle(recorder);
  CHECK(names(recorder.trace()).back() == "a");
}

TEST_CASE("a graph whose records come in two parts keeps its names", "[jit][profile]") {
  Recorder recorder({});
  Join join;
  join.submit(5, plan_of({"a", "b"}));
  join.correlate(3, 5);
  join.add(kernel_at("a", 1, 3, 1));
  join.settle(recorder);
  join.add(kernel_at("b", 9, 3, 2));
  join.settle(recorder);
  CHECK(names(recorder.trace()) == std::vector<std::string>{"author's a", "author's b"});
}

TEST_CASE("CUPTI times launches, and overlaps of PDL are seen", "[jit][profile]") {
  FakeCupti& fake = new_fake_cupti();
  Profiled profiled(cupti_places());
  const Device device = profiled.machine.open();
  const Tensor<f32, 1> x(device, {20}), y(device, {20});
  // The entry point of the machine's compiled code has no name.
  constexpr std::uint64_t second = 1'000'000'000;
  fake.calls = {{{"", second, 6 * second}}, {{"", 5 * second, 9 * second}}, {{"copy", 10 * second, 11 * second}}};
  fake.backwards = GENERATE(false, true);
  launch(device.stream(), copy_kernel(), x, y);
  launch(device.stream(), copy_kernel(), x, y);
  std::vector<float> values(20);
  device.stream().copy(x.data(), values.data(), 80);
  CHECK((fake.pushed == 3 && fake.popped == 3));
  const json trace = profiled.trace();
  INFO(profiled.text);
  std::vector<json> kernels = events(trace, "X", "kernel");
  REQUIRE(kernels.size() == 2);
  CHECK(names(kernels)[0].find("kernel without") == std::string::npos);
  CHECK(names(kernels) == std::vector<std::string>{"copy", "copy"});
  CHECK(kernels[0]["tid"] != kernels[1]["tid"]);  // they overlap
  const json& arguments = kernels[0]["args"];
  CHECK(arguments["line"].get<std::string>().find("fake_gpu.hpp:") != std::string::npos);
  CHECK((arguments["registers"] == 40 && arguments["threads"] == 128 && arguments["shared_bytes"] == 1024));
  CHECK((arguments["grid"] == json::array({5}) && arguments["bytes"] == 160));
  CHECK(names(events(trace, "X", "launch")) == std::vector<std::string>{"launch copy", "launch copy", "launch copy"});
  CHECK(events(trace, "s").size() == 3);
  const std::vector<json> copies = events(trace, "X", "copy");
  REQUIRE(copies.size() == 1);
  CHECK((copies[0]["args"]["bytes"] == 256 && copies[0]["args"]["how"] == "to the device"));
  CHECK(trace["otherData"]["clock"].get<std::string>().find("CUPTI 130000") != std::string::npos);
}

TEST_CASE("nodes of a graph have their kernels' names", "[jit][profile]") {
  FakeCupti& fake = new_fake_cupti();
  Profiled profiled(cupti_places());
  const Device device = profiled.machine.open();
  const Tensor<f32, 1> x(device, {20}), y(device, {20});
  const Stream stream = device.new_stream();
  launch(stream, copy_kernel(), x, y);
  const CapturedGraph graph = stream.capture([&] {
    launch(stream, copy_kernel(), x, y);
    launch(stream, grid_kernel(), y, 1, 2, 3);
  });
  const int before = fake.pushed;
  fake.calls = {{{"", 300, 400, 2}, {"", 100, 200, 1}}};
  stream.launch(graph);
  CHECK(fake.pushed == before + 1);
  const json trace = profiled.trace();
  CHECK(names(events(trace, "X", "kernel")) == std::vector<std::string>{"copy", "grid"});
  const std::vector<json> graphs = events(trace, "X", "graph");
  REQUIRE(graphs.size() == 1);
  CHECK(graphs[0]["args"]["launches"] == 2);
  CHECK(events(trace, "s").size() == 1);  // to the first node
}

TEST_CASE("without CUPTI events time launches, and the trace says so", "[jit][profile]") {
  Profiled profiled({"/nonexistent/libcupti.so"});
  std::optional<Device> device;
  const std::string told = line_of([&] { device = profiled.machine.open(); });
  CHECK(says(told, {"profile without CUPTI", "launches are timed by events", "PDL", "/nonexistent"}));
  const Tensor<f32, 1> x(*device, {20}), y(*device, {20});
  const Stream stream = device->new_stream();
  launch(stream, copy_kernel(), x, y);
  launch(stream, copy_kernel(), x, y);
  const CapturedGraph graph = stream.capture([&] { launch(stream, copy_kernel(), x, y); });
  stream.launch(graph);
  const json trace = profiled.trace();
  INFO(profiled.text);
  CHECK(names(events(trace, "X", "kernel")) == std::vector<std::string>{"copy", "copy", "graph"});
  CHECK(events(trace, "X", "launch").size() >= 2);
  CHECK(trace["otherData"]["clock"].get<std::string>().find("by events") != std::string::npos);
  // A second collection adds what came since.
  launch(stream, copy_kernel(), x, y);
  CHECK(events(profiled.trace(), "X", "kernel").size() == 4);
}

TEST_CASE("events that time launches are used again", "[jit][profile]") {
  Profiled profiled({});
  std::optional<Device> device;
  CHECK(says(line_of([&] { device = profiled.machine.open(); }), {"TESSERA_CUPTI=none"}));
  const Tensor<f32, 1> x(*device, {20}), y(*device, {20});
  const auto copy = copy_kernel();
  constexpr int launches = 5000;
  for (int i = 0; i < launches; ++i) launch(device->stream(), copy, x, y);
  CHECK(profiled.machine.fake.events < 2 * 1024 + 100);
  profiled.devices.collect(profiled.recorder);
  for (const profile::Total& total : profiled.recorder.trace().totals)
    if (total.kind == profile::Kind::kernel) CHECK(total.count == launches);
}

TEST_CASE("a driver that permits no tracing is told in a sentence", "[jit][profile]") {
  FakeCupti& fake = new_fake_cupti();
  Join join;
  const auto refused = [&] { return error_of([&] { const cuda::Cupti cupti(cupti_places(), join); }); };
  fake.failing = "cuptiActivityEnable";
  CHECK(says(refused(), {"cuptiActivityEnable failed with CUPTI_ERROR_OF_THE_TEST (35)",
                         "permits this user no profiling", "NVreg_RestrictProfilingToAdminUsers=0"}));
  fake.failure = 39;
  CHECK(says(refused(), {"another profiler uses CUPTI"}));
  fake.failure = 999;
  CHECK(says(refused(), {"(999)"}));
  fake.failing = "cuptiActivityRegisterCallbacks";
  CHECK(says(refused(), {"cuptiActivityRegisterCallbacks failed"}));
  CHECK(fake.enabled.empty());  // what was turned on is off again
  fake.failing = "";
  for (const std::uint32_t version : {18u, 100u, 129999u, 140000u}) {
    fake.version = version;
    CHECK(says(refused(), {"the records of CUPTI " + std::to_string(version), "are not known"}));
  }
  for (const std::uint32_t version : {19u, 28u, 130500u}) {
    fake.version = version;
    CHECK(refused() == "(no error)");
    CHECK(fake.enabled.empty());
  }
  const cuda::Cupti first(cupti_places(), join);
  CHECK(says(refused(), {"CUPTI already traces"}));
}

TEST_CASE("CUPTI is searched for where toolkits have it", "[jit][profile]") {
  const auto nothing = [](std::string_view) { return std::string(); };
  CHECK(cuda::Cupti::places("/a/file.so", nothing) == std::vector<std::string>{"/a/file.so"});
  const TempDir folder;
  CHECK(cuda::Cupti::places(folder.path().string(), nothing).at(0) == (folder / "libcupti.so.13").string());
  const std::vector<std::string> places = cuda::Cupti::places(
      "", [](std::string_view name) { return name == "CUDA_HOME" ? std::string("/opt/cuda") : std::string(); });
  CHECK(places.at(0) == "libcupti.so.13");
  CHECK(std::ranges::count(places, "/opt/cuda/extras/CUPTI/lib64/libcupti.so.13") == 1);
}

TEST_CASE("while the profiler is off, a launch makes the same calls of the driver as ever", "[jit][profile]") {
  const auto launched = [](Machine& machine) {
    const Device device = machine.open();
    const Tensor<f32, 1> x(device, {20}), y(device, {20});
    const Stream stream = device.new_stream();
    launch(stream, copy_kernel(), x, y);  // makes its code
    return machine.calls_of([&] {
      launch(stream, copy_kernel(), x, y);
      const CapturedGraph graph = stream.capture([&] { launch(stream, copy_kernel(), x, y); });
      stream.launch(graph);
      std::vector<float> values(20);
      stream.copy(x.data(), values.data(), 80);
    });
  };
  Calls off, on, again;
  {
    Machine machine;
    off = launched(machine);
  }
  CHECK(std::ranges::count_if(off, [](const std::string& call) { return call.starts_with("cuEvent"); }) == 0);
  {
    new_fake_cupti();
    Profiled profiled(cupti_places());
    on = launched(profiled.machine);
  }
  {
    Machine machine;
    again = launched(machine);
  }
  const auto without_addresses = [](Calls calls) {
    for (std::string& call : calls) call = call.substr(0, call.find(' '));
    return calls;
  };
  CHECK(without_addresses(off) == without_addresses(on));  // CUPTI watches from beside
  CHECK(without_addresses(off) == without_addresses(again));
}

TEST_CASE("an attached profiler gets ranges that nest", "[jit][profile]") {
  const char* const library = TESSERA_BIN_DIR "/libfake_nvtx.so";
  const std::unique_ptr<const profile::Nvtx> nvtx = profile::Nvtx::of(library);
  REQUIRE(nvtx);
  CHECK(profile::Nvtx::of("/nonexistent.so") == nullptr);
  CHECK(profile::Nvtx::of(TESSERA_BIN_DIR "/libfake_cuda.so") == nullptr);
  Recorder recorder({});
  {
    const Recording recording(recorder, nvtx.get());
    const profile::Span outer(profile::Kind::token, [] { return profile::named("append"); });
    const Device device = Device::cpu();
    const Tensor<f32, 1> x(device, {20}), y(device, {20});
    const auto copy = copy_kernel();
    launch(device.stream(), copy, x, y);
    launch(device.stream(), copy, x, y);
  }
  void* const opened = ::dlopen(library, RTLD_LAZY);
  const auto log = reinterpret_cast<const char* (*)()>(::dlsym(opened, "fake_nvtx_log"));
  REQUIRE(log);
  CHECK(std::string(log()) == "append\n  copy\n  copy\n  copy\n");  // it is compiled once
  ::dlclose(opened);
}

}  // namespace test_profile_devices
