// Devices against a fake driver: memory, copies, streams, events, captured launches.
#include <algorithm>
#include <cstring>
#include <functional>
#include <thread>

#include "support/catch.hpp"
#include "support/fake_gpu.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace device_tests {

using namespace tessera::internal;
using namespace fake_gpu;

TEST_CASE("memory is allocated and freed in an order that is valid for every stream", "[jit]") {
  Machine machine;
  const Device device = machine.open();      // stream1: for memory; stream2: the device's own
  const Stream other = device.new_stream();  // stream3
  Tensor<f32, 1> x(device, {64}), y(device, {64});
  const auto copy = copy_kernel();
  launch(device.stream(), copy, x, y);

  // A launch waits once for memory.
  Tensor<f32, 1> fresh;
  Calls calls = machine.calls_of([&] { fresh = Tensor<f32, 1>(device, {64}); });
  CHECK(calls == Calls{"cuMemAllocAsync 256 stream1", calls.at(1)});
  CHECK(says(calls[1], {"cuEventRecord", "stream1"}));
  for (const auto& [stream, name] : {std::pair(device.stream(), "stream2"), std::pair(other, "stream3")}) {
    calls = machine.calls_of([&, stream = stream] { launch(stream, copy, x, fresh); });
    REQUIRE(calls.size() == 2);
    CHECK(says(calls[0], {"cuStreamWaitEvent", name}));
    CHECK(says(calls[1], {"cuLaunchKernel entry", name}));
    CHECK(machine.calls_of([&, stream = stream] { launch(stream, copy, x, fresh); }).size() == 1);
  }

  // It is freed after all earlier work of all streams.
  calls = machine.calls_of([&] { fresh = {}; });
  REQUIRE(calls.size() == 5);
  CHECK(says(calls[0], {"cuEventRecord", "stream2"}));
  CHECK(says(calls[1], {"cuStreamWaitEvent stream1"}));
  CHECK(says(calls[2], {"cuEventRecord", "stream3"}));
  CHECK(says(calls[3], {"cuStreamWaitEvent stream1"}));
  CHECK(calls[4] == "cuMemFreeAsync stream1");
  CHECK(machine.fake.memory.size() == 2);
}

TEST_CASE("memory waits for the work of a destroyed stream", "[jit]") {
  Machine machine;
  const Device device = machine.open();
  auto stream = std::make_unique<Stream>(device.new_stream());
  const Calls calls = machine.calls_of([&] { stream.reset(); });
  REQUIRE(calls.size() == 3);
  CHECK(says(calls[0], {"cuEventRecord", "stream3"}));
  CHECK(says(calls[1], {"cuStreamWaitEvent stream1"}));
  CHECK(calls[2] == "cuStreamDestroy stream3");
}

TEST_CASE("a GPU without memory pools can allocate memory too", "[jit]") {
  Machine machine;
  machine.fake.devices[0].pools = false;
  machine.source.workspace_bytes = 100;
  const Device device = machine.open();
  Tensor<f32, 1> x(device, {64}), y(device, {64});
  CHECK(machine.fake.count("cuMemAlloc 256") == 2);
  const auto copy = copy_kernel();
  CHECK(machine.calls_of([&] { launch(device.stream(), copy, x, y); }).size() == 4);
  CHECK(machine.fake.memory.size() == 2);
  const Stream stream = device.new_stream();
  CHECK(says(error_of([&] { stream.capture([&] { launch(stream, copy, x, y); }); }),
             {"'copy' cannot be recorded", "workspace"}));
  x = {};
  CHECK(machine.fake.memory.size() == 1);
}

TEST_CASE("running out of GPU memory is an error with the figures", "[jit]") {
  Machine machine;
  machine.fake.memory_bytes = 100 << 20;
  const Device device = machine.open();
  const auto some = device.allocate(60 << 20);
  const std::string text = error_of([&] { device.allocate(50 << 20); });
  CHECK(says(text, {"cuda:0", "52.4 MB", "104.9 MB", "41.9 MB are free", "free tensors"}));
  CHECK(machine.fake.count("cuMemPoolTrimTo 0") == 1);
  machine.fake.fail["!cuMemAllocAsync"] = 2;  // until it has waited for freed memory
  CHECK(device.allocate(1) != nullptr);
  CHECK(device.allocate(0) != nullptr);
  machine.fake.fail["cuMemHostAlloc"] = 2;
  CHECK(says(error_of([&] { device.pinned(1 << 20); }), {"1.0 MB of pinned memory", "cuMemHostAlloc"}));
}

TEST_CASE("a device's copies come after all work, and are done when they return", "[jit]") {
  Machine machine;
  const Device device = machine.open();
  const Tensor<f32, 1> x(device, {10});
  const Calls calls = machine.calls_of([&] { x.copy_from(counted(10)); });
  REQUIRE(calls.size() == 4);
  CHECK(says(calls[0], {"cuEventRecord", "stream2"}));
  CHECK(calls[2] == "cuMemcpyAsync 40 stream1");
  CHECK(calls[3] == "cuStreamSynchronize stream1");
  CHECK(x.to_vector() == counted(10));
  CHECK(machine.calls_of([&] { device.copy_in(x.data(), nullptr, 0); }).empty());
}

TEST_CASE("a stream's copies keep its order", "[jit]") {
  Machine machine;
  for (const Device& device : {machine.open(), Device::cpu()}) {
    const auto pinned = device.pinned(8), memory = device.allocate(8), back = device.pinned(8);
    const std::int64_t value = 42;
    std::memcpy(pinned.get(), &value, 8);
    const Stream stream = device.new_stream();
    stream.copy(memory.get(), pinned.get(), 8);
    stream.copy(back.get(), memory.get(), 8);
    stream.synchronize();
    CHECK(std::memcmp(back.get(), &value, 8) == 0);
  }
  CHECK(machine.fake.count("cuMemcpyAsync 8 stream3") == 2);
}

TEST_CASE("pinned memory is freed when kernels of all streams have written to it", "[jit]") {
  Machine machine;
  const Device device = machine.open();
  const Stream other = device.new_stream();
  auto pinned = device.pinned(8);
  const auto calls = machine.calls_of([&] { pinned = nullptr; });
  REQUIRE(calls.size() >= 2);
  CHECK(calls[calls.size() - 1] == "cuMemFreeHost");
  CHECK(calls[calls.size() - 2] == "cuStreamSynchronize stream1");  // of the memory, which waits for the others
  CHECK(std::ranges::count_if(calls, [](const auto& call) { return call.starts_with("cuStreamWaitEvent"); }) == 2);
}

TEST_CASE("a thread keeps its current context", "[jit]") {
  Machine machine;
  machine.fake.devices.resize(2);
  const Device device = machine.open();
  CHECK(machine.context() == nullptr);
  std::thread([&] {
    const Tensor<f32, 1> x(device, {4});  // in a thread that never used CUDA
    x.copy_from(counted(4));
    CHECK(machine.context() == nullptr);
    int other = 1;
    fake_cuda_library().symbol<int (*)(void*)>("cuCtxSetCurrent")(&other);
    CHECK(x.to_vector() == counted(4));
    CHECK(machine.context() == &other);
  }).join();
}

TEST_CASE("events measure and order", "[jit]") {
  Machine machine;
  const Device device = machine.open();
  const Stream stream = device.stream(), other = device.new_stream();
  const Tensor<f32, 1> x(device, {4}), y(device, {4});
  const auto copy = copy_kernel();
  const Event begin = stream.record();
  for (int i = 0; i < 5; ++i) launch(stream, copy, x, y);
  const Event end = stream.record();
  CHECK(end.milliseconds_since(begin) == 6);  // on the fake's clock: 5 launches, and the event itself
  end.synchronize();
  const Calls calls = machine.calls_of([&] { other.wait(end); });
  CHECK(says(calls.at(0), {"cuStreamWaitEvent stream3"}));
  const Event on_cpu = Device::cpu().stream().record();
  CHECK(says(error_of([&] { stream.wait(on_cpu); }), {"another kind of device"}));
  CHECK(says(error_of([&] { end.milliseconds_since(on_cpu); }), {"another kind of device"}));
  CHECK(says(error_of([&] { on_cpu.milliseconds_since(end); }), {"another kind of device"}));
  CHECK(Device::cpu().stream().record().milliseconds_since(on_cpu) >= 0);
}

TEST_CASE("a stream may be the user's", "[jit]") {
  Machine machine;
  const Device device = machine.open();
  const Stream owner = device.new_stream();  // stream3
  const Tensor<f32, 1> x(device, {4}), y(device, {4});
  const auto copy = copy_kernel();
  {
    const Stream stream = device.stream_from(owner.native());
    CHECK(stream.native() == owner.native());
    CHECK(device.has(stream));
    launch(stream, copy, x, y);
    launch(device.stream_from(nullptr), copy, x, y);
  }
  CHECK(machine.fake.count("cuLaunchKernel entry stream3") == 1);
  CHECK(machine.fake.count("cuLaunchKernel entry stream0") == 1);
  CHECK(machine.fake.count("cuStreamDestroy") == 0);
  CHECK(says(error_of([] { Device::cpu().stream_from(nullptr); }), {"CPU", "CUstream"}));
}

TEST_CASE("a captured graph runs as often as it is launched", "[jit]") {
  Machine machine;
  for (const Device& device : {machine.open(), Device::cpu()}) {
    const Stream stream = device.stream();
    const Tensor<i32, 1> count(device, {1});
    count.copy_from(std::vector<i32>{0});
    std::optional<CapturedGraph> graph;
    {
      const auto add = kernel("add", [](InOut<i32, 1> x) {  // destroyed before the graph runs
        Tile value = load(x, {0}, {1});
        store(x, {0}, value + 1);
      });
      const Tensor<i32, 1> one(device, {1}), two(device, {1});
      one.copy_from(std::vector<i32>{7});
      graph = stream.capture([&] {
        launch(stream, add, count);
        stream.copy(two.data(), one.data(), 4);
        launch(stream, add, count);
      });
      CHECK(count.to_vector()[0] == 0);
      stream.launch(*graph);
      stream.synchronize();
      CHECK(two.to_vector()[0] == 7);
      CHECK(machine.fake.launches.size() == (device == Device::cpu() ? 4 : 2));
      graph = stream.capture([&] { launch(stream, add, count); });
    }
    stream.launch(*graph);
    stream.launch(*graph);
    if (device == Device::cpu()) CHECK(count.to_vector()[0] == 4);
  }
  CHECK(machine.fake.launches.size() == 4);
}

TEST_CASE("a sequence makes the same driver calls as its launches, and one call when it is captured", "[jit]") {
  Machine machine;
  const Device device = machine.open();
  const Stream stream = device.stream();
  const auto copy = copy_kernel();
  const Tensor<f32, 1> x(device, {4}), y(device, {4}), z(device, {64});
  Sequence sequence(device);
  sequence.add(copy, x, y);
  sequence.add(copy, y, z);
  sequence.add(copy, x, y);
  CHECK(sequence.dependencies() == std::vector<std::vector<std::size_t>>{{}, {0}, {1}});
  CHECK(machine.fake.launches.empty());
  sequence.run(stream);
  const auto plain = machine.calls_of([&] {
    launch(stream, copy, x, y);
    launch(stream, copy, y, z);
    launch(stream, copy, x, y);
  });
  const std::size_t compiled = machine.compiled.size();
  CHECK(machine.calls_of([&] { sequence.run(stream); }) == plain);
  CHECK(machine.fake.launches.size() == 9);

  std::optional<CapturedGraph> graph;
  const Calls recorded = machine.calls_of([&] { graph = sequence.record(stream); });
  CHECK(std::ranges::count(recorded, "record cuLaunchKernel entry stream2") == 3);
  CHECK(machine.fake.launches.size() == 9);
  CHECK(machine.calls_of([&] { stream.launch(*graph); }).size() == 1);
  CHECK(machine.fake.launches.size() == 12);
  CHECK(machine.compiled.size() == compiled);

  const Tensor<f32, 1> host(Device::cpu(), {4});
  CHECK(says(error_of([&] { sequence.add(copy, host, y); }), {"'copy' refused", "argument 1 is a tensor of cpu"}));
  CHECK(says(error_of([&] { sequence.run(Device::cpu().stream()); }), {"launches for cuda:0", "a stream of cpu"}));
}

TEST_CASE("during a stream capture nothing waits, and a failure ends it", "[jit]") {
  Machine machine;
  for (const Device& device : {machine.open(), Device::cpu()}) {
    const Stream stream = device.stream(), other = device.new_stream();
    const Tensor<f32, 1> x(device, {4});
    const Event event = stream.record();
    const std::function<void()> waiting[] = {[&] { stream.synchronize(); },    [&] { other.synchronize(); },
                                             [&] { event.synchronize(); },     [&] { x.to_vector(); },
                                             [&] { x.copy_from(counted(4)); }, [&] { stream.capture([] {}); }};
    for (const auto& wait : waiting)
      CHECK(says(error_of([&] { stream.capture(wait); }), {"while this thread records a stream"}));
    CHECK(error_of([&] { stream.synchronize(); }) == "(no error)");
    CHECK(error_of([&] { stream.launch(stream.capture([] {})); }) == "(no error)");
  }
}

TEST_CASE("memory may be allocated and freed during a stream capture", "[jit]") {
  Machine machine;
  const Device device = machine.open();
  const Stream stream = device.stream();
  const auto copy = copy_kernel();
  const Tensor<f32, 1> x(device, {4});
  Tensor<f32, 1> y;
  auto temporary = device.allocate(100);
  const Calls calls = machine.calls_of([&] {
    stream.capture([&] {
      y = Tensor<f32, 1>(device, {4});
      temporary.reset();
      launch(stream, copy, x, y);  // loads code, too
    });
  });
  for (const std::string& call : calls)
    if (call.starts_with("record ")) CHECK(call == "record cuLaunchKernel entry stream2");
  CHECK(std::count(calls.begin(), calls.end(), "cuMemFreeAsync stream1") == 1);
  CHECK(machine.fake.memory.size() == 2);
}

TEST_CASE("a tensor of another device is rejected", "[jit]") {
  Machine machine;
  const Device device = machine.open();
  const Tensor<f32, 1> here(device, {4}), there(Device::cpu(), {4});
  CHECK(says(error_of([&] { launch(device.stream(), copy_kernel(), here, there); }),
             {"'copy'", "argument 2 is a tensor of cpu", "the stream is of cuda:0"}));
  CHECK(says(error_of([&] { launch(Device::cpu().stream(), copy_kernel(), here, there); }),
             {"argument 1 is a tensor of cuda:0"}));
  CHECK(machine.fake.launches.empty());
}

TEST_CASE("a kernel runs on the CPU and on a GPU", "[jit]") {
  Machine machine;
  const auto copy = copy_kernel();
  const Device device = machine.open();
  const Tensor<f32, 1> x(Device::cpu(), {5}), y(Device::cpu(), {5}), a(device, {5}), b(device, {5});
  x.copy_from(counted(5));
  launch(Device::cpu().stream(), copy, x, y);
  launch(device.stream(), copy, a, b);
  launch(Device::cpu().stream(), copy, x, y);
  CHECK(y.to_vector() == counted(5));
  CHECK(machine.fake.launches.size() == 1);
}

}  // namespace device_tests
