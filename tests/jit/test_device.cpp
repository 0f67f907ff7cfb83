// Devices: memory, streams, events, captured launches, and launches through the driver, against a fake driver.
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <latch>
#include <mutex>
#include <numeric>
#include <thread>

#include "codegen/kernel_source.hpp"
#include "fake_cuda/machine.hpp"
#include "jit/cuda/tensor_maps.hpp"
#include "support/catch.hpp"
#include "support/role_plans.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace device_tests {

using namespace tessera::internal;

namespace {

using Kind = KernelParameter::Kind;
using Calls = std::vector<std::string>;

/// A machine with a GPU, and a compiler that returns `source` for every kernel.
struct Machine {
  FakeCuda& fake = new_fake_cuda();
  KernelSource source{.author = "entry",
                      .name = "entry",
                      .text = "text",
                      .plan = "",
                      .parameters = {},
                      .tma_tensors = {},
                      .threads = 128};
  std::mutex mutex;  // protects the next member
  std::vector<Variant> compiled;
  std::function<void()> compiling = [] {};  ///< called during compilation
  int recompiled = 0;
  std::string image = "image";
  std::vector<std::shared_ptr<const CacheEntry>> entries;
  bool synchronous = false, pdl = true;
  SplitKPolicy split_k = SplitKPolicy::cluster;

  Device open() {
    const auto code = [this](const std::string& text) {
      CacheEntry entry;
      for (const char c : text + '\0') entry.code.image.push_back(static_cast<std::byte>(c));
      return CompiledKernel{source, std::make_shared<const CacheEntry>(std::move(entry))};
    };
    CudaSettings settings;
    settings.synchronous = synchronous;
    settings.pdl = pdl;
    settings.split_k = split_k;
    settings.compile = [=, this](const Graph&, const Variant& variant, Arch) {
      compiling();
      const std::lock_guard lock(mutex);
      compiled.push_back(variant);
      return code(image);
    };
    settings.recompile = [=, this](const Graph&, const Variant&, Arch) {
      ++recompiled;
      return code(image == "refused once" ? "image again" : image);
    };
    return Device(CudaDevices(fake_cuda_places(), settings).first());
  }

  /// The driver calls that `action` causes.
  template <class Action>
  Calls calls_of(Action&& action) {
    fake.calls.clear();
    action();
    return std::exchange(fake.calls, {});
  }
  void* context() const {
    void* context = nullptr;
    fake_cuda_library().symbol<int (*)(void**)>("cuCtxGetCurrent")(&context);
    return context;
  }
};

auto copy_kernel() {
  return kernel("copy", [](In<f32, 1> x, Out<f32, 1> y) {
    Index i = blocks(cdiv(y.extent(0), 4));
    store(y, {i}, load(x, {i}, {4}));
  });
}

/// A grid of three axes from three scalars.
auto grid_kernel() {
  return kernel("grid", [](Out<f32, 1> y, Scalar<i32> n, Scalar<i32> m, Scalar<i32> k) {
    auto [i, j, l] = blocks(n, m, k);
    store(y, {i + j + l}, full<f32>({1}, 5));
  });
}

/// A kernel whose arguments' tensor maps a test chooses.
template <class T, int R>
auto boxes_kernel() {
  return kernel("boxes", [](In<T, R> x, Out<f32, 1> y) { store(y, {x.extent(0)}, full<f32>({1}, 5)); });
}

std::vector<float> counted(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

template <class T>
T read(const std::vector<std::byte>& bytes, std::size_t offset) {
  T value{};
  REQUIRE(offset + sizeof value <= bytes.size());
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace

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

TEST_CASE("code is made once for each class of launches", "[jit]") {
  Machine machine;
  const Device device = machine.open();
  const auto copy = copy_kernel();
  const Tensor<f32, 1> x(device, {64}), y(device, {64});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        launch(device.stream(), copy, x, y);
        launch(device.stream(), copy, x.slice(0, 1, 16), y);  // not aligned
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(machine.compiled.size() == 2);
  CHECK(machine.fake.launches.size() == 160);
  CHECK(machine.fake.modules == 2);
  launch(device.stream(), copy, x.slice(0, 0, 3), y);  // rows that end within 16 bytes
  CHECK(machine.compiled.size() == 3);
}

TEST_CASE("variants of a kernel compile at the same time", "[jit]") {
  Machine machine;
  const Device device = machine.open();
  const auto copy = copy_kernel();
  const Tensor<f32, 1> x(device, {64}), y(device, {64});
  std::promise<void> both;
  std::atomic<int> begun = 0, alone = 0;
  machine.compiling = [&, met = both.get_future().share()] {
    if (++begun == 2) both.set_value();
    alone += met.wait_for(std::chrono::seconds(20)) != std::future_status::ready;
  };
  {
    std::jthread aligned([&] { launch(device.stream(), copy, x, y); });
    launch(device.stream(), copy, x.slice(0, 1, 16), y);
  }
  CHECK(machine.compiled.size() == 2);
  CHECK(alone == 0);
}

TEST_CASE("a kernel's parameters are laid out as it declares them", "[jit]") {
  Machine machine;
  machine.source.workspace_bytes = 8;
  machine.source.parameters = {{Kind::extent, 0, 0}, {Kind::pointer, 0},   {Kind::scalar, 2},  {Kind::scalar, 3},
                               {Kind::scalar, 4},    {Kind::stride, 1, 0}, {Kind::grid, 0, 1}, {Kind::blocks},
                               {Kind::workspace},    {Kind::stride, 0, 1}};
  const Device device = machine.open();
  const auto mixed = kernel("mixed", [](In<f32, 2> x, Out<f32, 2> y, Scalar<i32> n, Scalar<i64> big, Scalar<f32> f) {
    auto [i, j] = blocks(n, 7);
    Tile scale = load(x, {i, j}, {1, 1}) * f;
    store(y, {i, j}, where(big > 0, scale, scale + 1));
  });
  std::vector<float> memory(100);
  const Tensor<f32, 2> x(device, memory.data(), {3, 5}, {-20, 1}), y(device, {3, 7});
  launch(device.stream(), mixed, x, y, 11, std::int64_t(1) << 40, 2.5);
  {
    const FakeCuda::Launch& launched = machine.fake.launches.at(0);
    const auto& bytes = launched.parameters;
    CHECK(launched.grid == 77);
    CHECK(launched.block == 128);
    CHECK(read<std::int32_t>(bytes, 0) == 3);
    CHECK(read<const float*>(bytes, 8) == x.data());
    CHECK(read<std::int32_t>(bytes, 16) == 11);
    CHECK(read<std::int64_t>(bytes, 24) == std::int64_t(1) << 40);
    CHECK(read<float>(bytes, 32) == 2.5f);
    CHECK(read<std::int32_t>(bytes, 36) == 7);   // stride
    CHECK(read<std::int32_t>(bytes, 40) == 7);   // grid
    CHECK(read<std::int32_t>(bytes, 44) == 77);  // CTAs
    CHECK(read<std::uint64_t>(bytes, 48) != 0);  // workspace
    CHECK(read<std::int32_t>(bytes, 56) == 1);
    CHECK(bytes.size() == 60);
  }
  const Tensor<f32, 2> wide(device, memory.data(), {1, 5}, {std::int64_t(1) << 33, 1});
  launch(device.stream(), mixed, wide, y, 11, 1, 2.5);
  const auto& bytes = machine.fake.launches.at(1).parameters;
  CHECK(machine.compiled.at(1).index64);
  CHECK(read<std::int64_t>(bytes, 40) == 7);  // stride
  CHECK(read<std::int32_t>(bytes, 48) == 7);  // grid
  CHECK(read<std::int64_t>(bytes, 56) == 77);
  CHECK(bytes.size() == 80);
}

TEST_CASE("clusters split a matmul's k-iterations where the grid has few CTAs", "[jit]") {
  Machine machine;
  machine.source.persistent = true;
  machine.source.split_k = SplitK::cluster;
  const Device device = machine.open();
  const auto product = kernel("product", [](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
    Var acc = zeros<f32>({64, 64});
    for (Index k : range(cdiv(x.extent(1), 64))) acc = mma(load(x, {m, k}, {64, 64}), load(w, {k, n}, {64, 64}), acc);
    store(y, {m, n}, acc);
  });
  const auto launched = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    const Tensor<bf16, 2> x(device, {m, k}), w(device, {k, n});
    const Tensor<f32, 2> y(device, {m, n});
    launch(device.stream(), product, x, w, y);
    return machine.fake.launches.back();
  };
  const FakeCuda::Launch shared = launched(16, 768, 3072);
  CHECK(machine.compiled.back().split_k == SplitK::cluster);
  CHECK(shared.cluster == 4);
  CHECK(shared.grid == 12 * 4);
  CHECK(machine.fake.count("cuLaunchKernelEx entry") == 1);
  CHECK(launched(16, 768, 1280).cluster == 3);
  CHECK(launched(16, 1408, 12800).cluster == 5);  // 22 tiles: at most 16 clusters of 6 are resident at a time
  CHECK(machine.compiled.size() == 1);
  CHECK(launched(16, 768, 768).cluster == 1);
  CHECK(machine.compiled.back().split_k == SplitK::none);
  CHECK(machine.fake.count("cuLaunchKernel entry") == 1);
  const FakeCuda::Launch full = launched(512, 768, 3072);  // 96 CTAs on 132 multiprocessors
  CHECK(full.cluster == 1);
  CHECK(full.grid == 96);
  CHECK(machine.compiled.size() == 2);
  // Code without split-K is launched normally.
  machine.source.split_k = SplitK::none;
  const Device other = machine.open();
  const Tensor<bf16, 2> x(other, {16, 3072}), w(other, {3072, 768});
  const Tensor<f32, 2> y(other, {16, 768});
  launch(other.stream(), product, x, w, y);
  CHECK(machine.fake.launches.back().cluster == 1);
  CHECK(machine.fake.launches.back().grid == 12);
  machine.source.split_k = SplitK::cluster;
  machine.fake.fail = {{"cuLaunchKernelEx", 701}};
  const Device third = machine.open();
  const Tensor<bf16, 2> a(third, {16, 3072}), b(third, {3072, 768});
  const Tensor<f32, 2> c(third, {16, 768});
  CHECK(says(error_of([&] { launch(third.stream(), product, a, b, c); }), {"'product'", "cuLaunchKernelEx", "tiles"}));
}

TEST_CASE("stream-K splits matmuls where multiprocessors would be idle", "[jit]") {
  Machine machine;
  machine.split_k = SplitKPolicy::automatic;
  machine.source.persistent = true;
  machine.source.split_k = SplitK::stream_k;
  machine.source.workspace_bytes = 1000;
  machine.source.parameters = {{Kind::blocks}, {Kind::lockstep_rows}, {Kind::workspace}, {Kind::flags}};
  machine.fake.parameter_bytes["entry"] = {4, 4, 8, 8};
  const Device device = machine.open();
  const auto product = kernel("product", [](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), 128), cdiv(y.extent(1), 128));
    Var acc = zeros<f32>({128, 128});
    for (Index k : range(cdiv(x.extent(1), 64))) acc = mma(load(x, {m, k}, {128, 64}), load(w, {k, n}, {64, 128}), acc);
    store(y, {m, n}, acc);
  });
  const auto launched = [&](const Stream& stream, std::int64_t m, std::int64_t n, std::int64_t k) {
    const Tensor<bf16, 2> x(device, {m, k}), w(device, {k, n});
    const Tensor<f32, 2> y(device, {m, n});
    launch(stream, product, x, w, y);
    return machine.fake.launches.back();
  };
  const auto flags_of = [&](const FakeCuda::Launch& one) { return read<std::uint64_t>(one.parameters, 16); };
  const FakeCuda::Launch first = launched(device.stream(), 496, 2176, 4400);
  CHECK(machine.compiled.back().split_k == SplitK::stream_k);
  CHECK(first.grid == 132);
  CHECK(read<std::int32_t>(first.parameters, 0) == 68);
  CHECK(read<std::int32_t>(first.parameters, 4) == 1);
  CHECK(machine.fake.count("cuMemsetD32Async 1024") == 1);
  // Four tiles in lockstep, where operands are larger than the L2 cache; flags belong to the stream.
  const FakeCuda::Launch second = launched(device.stream(), 500, 8576, 7760);
  CHECK(second.grid == 132);
  CHECK(read<std::int32_t>(second.parameters, 4) == 4);
  CHECK(flags_of(second) == flags_of(first));
  const Stream other = device.new_stream();
  CHECK(flags_of(launched(other, 496, 2176, 4400)) != flags_of(first));
  CHECK(machine.fake.count("cuMemsetD32Async 1024") == 2);
  // A captured graph has its own memory for all its launches, as long as it lives.
  const Tensor<bf16, 2> x(device, {496, 4400}), w(device, {4400, 2176});
  const Tensor<f32, 2> y(device, {496, 2176});
  const std::size_t before = machine.fake.memory.size();
  {
    const auto calls = machine.calls_of([&] {
      const CapturedGraph graph = other.capture([&] {
        for (int i = 0; i < 2; ++i) launch(other, product, x, w, y);
      });
      CHECK(machine.fake.memory.size() == before + 2);
    });
    for (const std::string& call : calls) CHECK(call.find("record cuMem") == call.npos);
  }
  CHECK(machine.fake.memory.size() == before);
  CHECK(machine.compiled.size() == 1);
  machine.source.split_k = SplitK::none;
  CHECK(launched(device.stream(), 128, 16896, 3584).grid == 132);  // one whole wave
  CHECK(machine.compiled.back().split_k == SplitK::none);
  CHECK(machine.compiled.size() == 2);
  // Code without stream-K is launched normally.
  const Device third = machine.open();
  const Tensor<bf16, 2> a(third, {496, 4400}), b(third, {4400, 2176});
  const Tensor<f32, 2> c(third, {496, 2176});
  launch(third.stream(), product, a, b, c);
  CHECK(machine.fake.launches.back().grid == 68);
}

TEST_CASE("a kernel that waits for the previous launch starts while that one ends", "[jit]") {
  Machine machine;
  const auto early = [&](bool waits, bool pdl) {
    machine.source.waits_for_previous = waits;
    machine.pdl = pdl;
    const Device device = machine.open();
    const Stream stream = device.new_stream();
    const Tensor<f32, 1> x(device, {4});
    // Nothing is known about work before the first launch.
    for (int i = 0; i < 2; ++i) {
      launch(stream, kernel("k", [](Out<f32, 1> y) { store(y, {0}, zeros<f32>({4})); }), x);
      if (i == 0) CHECK_FALSE(machine.fake.launches.back().early);
    }
    return machine.fake.launches.back().early;
  };
  CHECK(early(true, true));
  CHECK_FALSE(early(true, false));
  CHECK_FALSE(early(false, true));
  machine.fake.version = 12020;  // it does not capture such launches
  CHECK_FALSE(early(true, true));
  CHECK(machine.fake.count("cuLaunchKernelEx entry") == 1);
}

TEST_CASE("a launch prefetches tensors that no launch in flight writes", "[jit]") {
  Machine machine;
  machine.source.waits_for_previous = true;
  machine.source.prefetched_before_wait = {0};
  machine.source.parameters = {{Kind::may_prefetch}};
  machine.fake.parameter_bytes["entry"] = {4};
  const Device device = machine.open();
  const Tensor<f32, 1> memory(device, {1000});
  const auto part = [&](std::int64_t first, std::int64_t count) { return memory.slice(0, first, count); };
  const Tensor<f32, 1> weights = part(0, 100), a = part(100, 100), b = part(200, 100);
  const auto copy = copy_kernel();
  struct How {
    bool early, ahead;
    bool operator==(const How&) const = default;
  };
  const auto how = [&](std::size_t before_last) {
    const FakeCuda::Launch& launched = machine.fake.launches.at(machine.fake.launches.size() - 1 - before_last);
    return How{launched.early, read<std::int32_t>(launched.parameters, 0) != 0};
  };
  const auto from = [&](const Stream& stream, const Tensor<f32, 1>& x, const Tensor<f32, 1>& y) {
    launch(stream, copy, x, y);
    return how(0);
  };
  const How first{false, true}, brings{true, true}, waits{true, false};
  const Stream stream = device.new_stream();
  CHECK(from(stream, weights, a) == first);
  CHECK(from(stream, weights, b) == brings);
  CHECK(from(stream, a, b) == waits);  // the very first launch may still be running
  CHECK(from(stream, part(99, 2), part(300, 100)) == waits);
  CHECK(from(stream, part(50, 50), part(0, 50)) == brings);
  CHECK(from(stream, weights, part(400, 100)) == waits);
  CHECK(from(stream, part(50, 0), part(400, 100)) == brings);  // without elements
  // After work of another kind, whose end a launch waits for, everything is done.
  const auto behind = [&](auto work) {
    launch(stream, copy, part(500, 10), weights);
    CHECK(from(stream, weights, a) == waits);
    work();
    CHECK(from(stream, weights, a) == first);
    CHECK(from(stream, weights, b) == brings);
  };
  std::vector<float> values(10);
  const CapturedGraph graph = stream.capture([&] {
    for (const Tensor<f32, 1>& y : {a, b}) launch(stream, copy, weights, y);
    launch(stream, copy, a, b);
  });
  behind([&] { stream.copy(values.data(), a.data(), 40); });
  behind([&] {
    stream.launch(graph);
    CHECK((how(2) == first && how(1) == brings && how(0) == waits));
  });
  behind([&] { stream.wait(device.stream().record()); });
  behind([&] { const Tensor<f32, 1> more(device, {10}); });
  // Captured launches do not run, and earlier launches continue.
  behind([&] { stream.capture([&] { launch(stream, copy, weights, a); }); });
  behind([&] {
    CHECK(error_of([&] { stream.capture([&] {
            launch(stream, copy, weights, a);
            throw Error("no more");
          }); }) == "no more");
  });
  // The same for another stream's capture that this one joins.
  behind([&] {
    const Stream begins = device.new_stream();
    begins.capture([&] {
      stream.wait(begins.record());
      launch(stream, copy, weights, a);
      begins.wait(stream.record());
    });
  });
  behind([&] { stream.synchronize(); });
  // A kernel that does not wait starts after all others.
  behind([&] {
    machine.source.waits_for_previous = false;
    const auto other = kernel("other", [](Out<f32, 1> y) { store(y, {0}, zeros<f32>({4})); });
    launch(stream, other, part(600, 4));
    machine.source.waits_for_previous = true;
    CHECK_FALSE(machine.fake.launches.back().early);
    CHECK(from(stream, weights, a) == brings);
    stream.wait(device.stream().record());
  });
  // Nor does a failed launch start.
  behind([&] {
    stream.copy(values.data(), a.data(), 40);
    machine.fake.fail = {{"cuLaunchKernel", 1}};
    CHECK(error_of([&] { launch(stream, copy, weights, a); }) != "(no error)");
    machine.fake.fail.clear();
  });
  // Too many tensors to track.
  for (int i = 0; i < 70; ++i) from(stream, part(50, 50), part(800 + i, 1));
  int anew = 0;
  for (int i = 0; i < 70; ++i) anew += !from(stream, part(50, 50), part(800 + i, 1)).early;
  CHECK((1 <= anew && anew <= 2));
  // On a user's stream, or one shared with the user, unknown launches are possible.
  const How shared{true, false};
  const Stream users = device.stream_from(stream.native());
  for (const Stream& one : {users, stream, stream, device.stream()}) CHECK(from(one, weights, a) == shared);
}

TEST_CASE("tensors that share one byte with outputs of a launch in flight are not prefetched", "[jit]") {
  Machine machine;
  machine.source.waits_for_previous = true;
  machine.source.prefetched_before_wait = {0};
  machine.source.parameters = {{Kind::may_prefetch}};
  machine.fake.parameter_bytes["entry"] = {4};
  const Device device = machine.open();
  const Tensor<u8, 1> memory(device, {100});
  const auto copy = kernel("copy", [](In<u8, 1> x, Out<u8, 1> y) { store(y, {0}, load(x, {0}, {4})); });
  const Stream stream = device.new_stream();
  const auto ahead = [&](std::int64_t first, std::int64_t count, std::int64_t to) {
    launch(stream, copy, memory.slice(0, first, count), memory.slice(0, to, 1));
    return read<std::int32_t>(machine.fake.launches.back().parameters, 0) != 0;
  };
  launch(stream, copy, memory.slice(0, 0, 1), memory.slice(0, 40, 10));  // writes 40 to 49
  CHECK(ahead(30, 10, 90));
  CHECK_FALSE(ahead(30, 11, 91));
  CHECK_FALSE(ahead(49, 11, 92));
  CHECK(ahead(50, 10, 93));
  CHECK_FALSE(ahead(90, 1, 94));  // a single byte of one byte
  CHECK(ahead(95, 1, 96));
}

TEST_CASE("a tensor map describes a tensor's layout in memory", "[jit]") {
  Machine machine;
  machine.source.parameters = {{Kind::tensor_map}};
  machine.fake.parameter_bytes["entry"] = {128};
  const Device device = machine.open();
  const Tensor<bf16, 3> memory(device, {4, 64, 128});
  const Tensor<f32, 1> y(device, {1});
  bf16* const data = memory.data();
  using Numbers = std::vector<std::uint64_t>;
  const auto check = [&]<class T, int R>(const Tensor<T, R>& x, TmaTensor tma_tensors, const Numbers& extents,
                                         const Numbers& strides, int type = 9) {
    machine.source.tma_tensors = {tma_tensors};
    launch(device.stream(), boxes_kernel<T, R>(), x, y);
    const std::vector<unsigned> box(tma_tensors.box.begin(), tma_tensors.box.begin() + R), steps(R, 1);
    REQUIRE(!machine.fake.tensor_maps.empty());
    const FakeCuda::TensorMap& map = machine.fake.tensor_maps.back();
    CHECK(map.type == type);
    CHECK(map.address == reinterpret_cast<std::uintptr_t>(x.data()));
    CHECK(map.extents == extents);
    CHECK(map.strides == strides);
    CHECK(map.box == box);
    CHECK(map.steps == steps);
    CHECK(map.interleave == 0);
    CHECK(map.swizzle == 3);    // of 128 bytes
    CHECK(map.promotion == 2);  // 128 bytes
    CHECK(map.fill == 0);       // zeros
  };
  const TmaTensor rows{.axes = {1, 0, -1, -1, -1}, .box = {64, 128, 1, 1, 1}};
  const TmaTensor columns{.axes = {0, 1, -1, -1, -1}, .box = {64, 32, 1, 1, 1}};
  const TmaTensor batch{.axes = {2, 1, 0, -1, -1}, .box = {64, 16, 1, 1, 1}};
  const Tensor<bf16, 2> dense(device, data, {256, 128}, {128, 1});
  check(dense, rows, {128, 256}, {256});
  check(dense.slice(0, 3, 7), rows, {128, 7}, {256});
  check(dense.slice(1, 8, 40), rows, {40, 256}, {256});
  check(Tensor<bf16, 2>(device, data, {128, 256}, {1, 128}), columns, {128, 256}, {256});
  check(memory, batch, {128, 64, 4}, {256, 64 * 256});
  check(Tensor<bf16, 3>(device, data, {16, 64, 32}, {32, 512, 1}), batch, {32, 64, 16}, {1024, 64});  // heads of rows
  // Along an axis of one element the stride is irrelevant.
  check(Tensor<bf16, 2>(device, data, {1, 128}, {7, 1}), rows, {128, 1}, {16});
  check(Tensor<bf16, 2>(device, data, {1, 128}, {std::int64_t(1) << 45, 1}), rows, {128, 1}, {16});
  check(Tensor<bf16, 3>(device, data, {4, 1, 128}, {128, 0, 1}), batch, {128, 1, 4}, {16, 256});
  check(Tensor<bf16, 2>(device, data, {1, 1}, {1, 1}), rows, {1, 1}, {16});
  check(Tensor<bf16, 1>(device, data, {500}, {1}), {.axes = {0, -1, -1, -1, -1}, .box = {64, 1, 1, 1, 1}}, {500}, {});
  check(Tensor<bf16, 5>(device, {2, 3, 4, 5, 8}), {.axes = {4, 3, 2, 1, 0}, .box = {8, 5, 4, 3, 2}}, {8, 5, 4, 3, 2},
        {16, 80, 320, 960});

  const TmaTensor small{.axes = {1, 0, -1, -1, -1}, .box = {16, 8, 1, 1, 1}};
  check(Tensor<u8, 2>(device, {8, 32}), small, {32, 8}, {32}, 0);
  check(Tensor<i32, 2>(device, {8, 32}), small, {32, 8}, {128}, 3);
  check(Tensor<i64, 2>(device, {8, 32}), small, {32, 8}, {256}, 5);
  check(Tensor<f16, 2>(device, {8, 32}), small, {32, 8}, {64}, 6);
  check(Tensor<f32, 2>(device, {8, 32}), small, {32, 8}, {128}, 7);
  TmaTensor rounded = small;
  rounded.to_tf32 = true;
  check(Tensor<f32, 2>(device, {8, 32}), rounded, {32, 8}, {128}, 11);  // to tf32
}

TEST_CASE("tensor maps are parameters, at the offsets that the kernel declares", "[jit]") {
  Machine machine;
  machine.source.tma_tensors = {{.argument = 1, .axes = {0, -1, -1, -1, -1}, .box = {4, 1, 1, 1, 1}},
                                {.argument = 0, .axes = {1, 0, -1, -1, -1}, .box = {8, 8, 1, 1, 1}},
                                {.argument = 0, .axes = {1, 0, -1, -1, -1}, .box = {8, 4, 1, 1, 1}}};
  const Device device = machine.open();
  const Tensor<f32, 2> x(device, {3, 8});
  const Tensor<f32, 1> y(device, {4});
  const auto map_at = [&](std::size_t offset) -> const FakeCuda::TensorMap& {
    const auto& bytes = machine.fake.launches.back().parameters;
    const auto number = read<std::uint64_t>(bytes, offset);
    for (std::size_t word = 1; word < 16; ++word) CHECK(read<std::uint64_t>(bytes, offset + 8 * word) == number);
    return machine.fake.tensor_maps.at(number);
  };
  machine.source.parameters = {{Kind::tensor_map, 0}, {Kind::tensor_map, 1}, {Kind::extent, 0, 0}, {Kind::pointer, 1}};
  machine.fake.parameter_bytes["entry"] = {128, 128, 4, 8};
  launch(device.stream(), boxes_kernel<f32, 2>(), x, y);
  CHECK(map_at(0).address == reinterpret_cast<std::uintptr_t>(y.data()));
  CHECK(map_at(128).address == reinterpret_cast<std::uintptr_t>(x.data()));
  CHECK(read<std::int32_t>(machine.fake.launches.back().parameters, 256) == 3);
  CHECK(read<const float*>(machine.fake.launches.back().parameters, 264) == y.data());
  CHECK(machine.fake.launches.back().parameters.size() == 272);

  machine.source.parameters = {
      {Kind::extent, 0, 0}, {Kind::tensor_map, 1}, {Kind::pointer, 1}, {Kind::tensor_map, 0}, {Kind::tensor_map, 2}};
  machine.fake.parameter_bytes["entry"] = {4, 128, 8, 128, 128};
  launch(device.stream(), boxes_kernel<f32, 2>(), x, y);
  CHECK(read<std::int32_t>(machine.fake.launches.back().parameters, 0) == 3);
  CHECK(map_at(64).address == reinterpret_cast<std::uintptr_t>(x.data()));
  CHECK(map_at(64).box == std::vector<unsigned>{8, 8});
  CHECK(read<const float*>(machine.fake.launches.back().parameters, 192) == y.data());
  CHECK(map_at(256).address == reinterpret_cast<std::uintptr_t>(y.data()));
  CHECK(map_at(384).box == std::vector<unsigned>{8, 4});
  CHECK(machine.fake.launches.back().parameters.size() == 512);
}

namespace {

/// A machine whose kernels have a tensor map for argument 1, and its address.
struct BoxMachine : Machine {
  BoxMachine() {
    source.tma_tensors = {{.argument = 0, .axes = {1, 0, -1, -1, -1}, .box = {64, 64, 1, 1, 1}}};
    source.parameters = {{Kind::tensor_map}, {Kind::pointer, 0}};
    fake.parameter_bytes["entry"] = {128, 8};
  }
  /// Launches with the map of another tensor.
  int wrong() const {
    return static_cast<int>(std::ranges::count_if(fake.launches, [&](const FakeCuda::Launch& launch) {
      return fake.tensor_maps.at(read<std::uint64_t>(launch.parameters, 0)).address !=
             read<std::uintptr_t>(launch.parameters, 128);
    }));
  }
};

}  // namespace

TEST_CASE("a tensor map is encoded once for each tensor", "[jit]") {
  BoxMachine machine;
  const Device device = machine.open();
  const Tensor<bf16, 2> x(device, {64, 128}), other(device, {64, 128});
  const Tensor<f32, 1> y(device, {1});
  const auto boxes = boxes_kernel<bf16, 2>();
  const auto encoded = [&](const Tensor<bf16, 2>& tensor) {
    const std::size_t before = machine.fake.tensor_maps.size();
    launch(device.stream(), boxes, tensor, y);
    return machine.fake.tensor_maps.size() - before;
  };
  bf16* const data = x.data();
  CHECK(encoded(x) == 1);
  CHECK(encoded(x) == 0);
  CHECK(encoded(Tensor<bf16, 2>(device, data, {64, 128}, {128, 1})) == 0);
  CHECK(encoded(other) == 1);
  CHECK(encoded(x.slice(0, 0, 48)) == 1);
  CHECK(encoded(Tensor<bf16, 2>(device, data, {48, 128}, {64, 1})) == 1);
  CHECK(encoded(x.slice(1, 0, 64)) == 1);
  CHECK(encoded(x.slice(0, 1, 48)) == 1);
  CHECK(encoded(Tensor<bf16, 2>(device, data, {1, 128}, {8, 1})) == 1);
  CHECK(encoded(Tensor<bf16, 2>(device, data, {1, 128}, {3, 1})) == 0);
  CHECK(encoded(x) == 0);
  CHECK(encoded(other) == 0);
  CHECK(machine.compiled.size() == 1);
  CHECK(machine.wrong() == 0);
}

TEST_CASE("tensor maps of ever new tensors do not accumulate", "[jit]") {
  BoxMachine machine;
  const Device device = machine.open();
  const std::int64_t many = TensorMaps::most_kept + 10;
  const Tensor<bf16, 2> x(device, {many, 64});
  const Tensor<f32, 1> y(device, {1});
  const auto boxes = boxes_kernel<bf16, 2>();
  const auto encoded = [&](std::int64_t row) {
    const std::size_t before = machine.fake.tensor_maps.size();
    launch(device.stream(), boxes, x.slice(0, row, 1), y);
    return machine.fake.tensor_maps.size() - before;
  };
  for (std::int64_t row = 0; row < many; ++row) CHECK(encoded(row) == 1);
  CHECK(encoded(many - 1) == 0);
  CHECK(encoded(0) == 1);
  CHECK(encoded(0) == 0);
  CHECK(machine.wrong() == 0);
}

TEST_CASE("threads that launch at the same time each pass the map of their own tensor", "[jit]") {
  BoxMachine machine;
  const Device device = machine.open();
  machine.fake.encoding = std::chrono::milliseconds(1);  // so that all threads need the same map at the same time
  constexpr std::int64_t tensors = 20, threads = 4, rounds = 50;
  const Tensor<bf16, 2> x(device, {tensors, 64});
  const Tensor<f32, 1> y(device, {1});
  const auto boxes = boxes_kernel<bf16, 2>();
  launch(device.stream(), boxes, x.slice(0, 0, 1), y);
  {
    std::latch together(threads);
    std::vector<std::jthread> running;
    for (int t = 0; t < threads; ++t)
      running.emplace_back([&] {
        together.arrive_and_wait();
        for (int round = 0; round < rounds; ++round)
          for (std::int64_t row = 0; row < tensors; ++row) launch(device.stream(), boxes, x.slice(0, row, 1), y);
      });
  }
  CHECK(machine.fake.launches.size() == 1 + rounds * threads * tensors);
  CHECK(machine.fake.tensor_maps.size() == tensors);
  CHECK(machine.wrong() == 0);
}

TEST_CASE("a captured launch keeps its tensor map", "[jit]") {
  BoxMachine machine;
  const Device device = machine.open();
  const Stream stream = device.stream();
  const Tensor<bf16, 2> x(device, {64, 128}), other(device, {64, 128});
  const Tensor<f32, 1> y(device, {1});
  const auto boxes = boxes_kernel<bf16, 2>();
  const CapturedGraph graph = stream.capture([&] {
    launch(stream, boxes, x, y);
    launch(stream, boxes, other, y);
  });
  CHECK(machine.fake.tensor_maps.size() == 2);
  CHECK(machine.fake.launches.empty());
  launch(stream, boxes, x.slice(0, 0, 48), y);
  for (int i = 0; i < 2; ++i) stream.launch(graph);
  REQUIRE(machine.fake.launches.size() == 5);
  for (const std::size_t i : {1, 3}) {
    CHECK(read<const bf16*>(machine.fake.launches[i].parameters, 128) == x.data());
    CHECK(read<const bf16*>(machine.fake.launches[i + 1].parameters, 128) == other.data());
  }
  CHECK(machine.wrong() == 0);
  CHECK(machine.fake.tensor_maps.size() == 3);
}

TEST_CASE("a tensor that the driver cannot encode is an error that describes it", "[jit]") {
  BoxMachine machine;
  machine.source.tma_tensors[0].box = {128, 32, 1, 1, 1};  // rows of 256 bytes
  const Device device = machine.open();
  const Tensor<bf16, 2> x(device, {64, 128});
  const Tensor<f32, 1> y(device, {1});
  CHECK(says(error_of([&] { launch(device.stream(), boxes_kernel<bf16, 2>(), x.slice(0, 0, 48), y); }),
             {"cuda:0", "kernel 'boxes'", "argument 1", "bf16 [48,128]", "strides [128,1]", "boxes of [128,32]",
              "dense copy", "cuTensorMapEncodeTiled failed with", "(1)"}));
  CHECK(machine.fake.launches.empty());
  machine.source.tma_tensors[0].box = {64, 32, 1, 1, 1};
  machine.fake.fail["!cuTensorMapEncodeTiled"] = 1;  // once
  const auto boxes = boxes_kernel<bf16, 2>();
  CHECK(says(error_of([&] { launch(device.stream(), boxes, x, y); }), {"kernel 'boxes'"}));
  CHECK(error_of([&] { launch(device.stream(), boxes, x, y); }) == "(no error)");
  CHECK(machine.wrong() == 0);
}

TEST_CASE("a grid with a zero launches nothing", "[jit]") {
  Machine machine;
  const Device device = machine.open();
  const Tensor<f32, 1> y(device, {4});
  launch(device.stream(), grid_kernel(), y, 3, 0, 5);
  CHECK(machine.fake.launches.empty());
  CHECK(machine.compiled.empty());
}

TEST_CASE("a grid has as many CTAs as a launch may have", "[jit]") {
  Machine machine;
  machine.source.parameters = {{Kind::blocks}};
  const Device device = machine.open();
  const Tensor<f32, 1> y(device, {4});
  constexpr int most = 0x7fffffff;
  launch(device.stream(), grid_kernel(), y, 1, most, 1);
  CHECK(machine.compiled.at(0).index64);
  REQUIRE(machine.fake.launches.size() == 1);
  CHECK(machine.fake.launches[0].grid == most);
  CHECK(read<std::int64_t>(machine.fake.launches[0].parameters, 0) == most);
  CHECK(says(error_of([&] { launch(device.stream(), grid_kernel(), y, 1 << 16, 1 << 15, 1); }),
             {"launch of kernel 'grid' refused: a grid of [65536,32768,1] blocks", "2^31 - 1 at most"}));
  CHECK(machine.fake.launches.size() == 1);
}

TEST_CASE("a launch uses 64-bit indices from this number of CTAs on", "[jit]") {
  Machine machine;
  const Device device = machine.open();
  const Tensor<f32, 1> y(device, {4});
  launch(device.stream(), grid_kernel(), y, 1 << 15, 1 << 15, 1);
  CHECK_FALSE(machine.compiled.back().index64);
  launch(device.stream(), grid_kernel(), y, (1 << 15) + 1, 1 << 15, 1);
  CHECK(machine.compiled.back().index64);
}

TEST_CASE("CTAs that are persistent fill the GPU once", "[jit]") {
  Machine machine;
  machine.source.persistent = true;
  machine.source.workspace_bytes = 1000;
  machine.source.shared_bytes = 100 << 10;
  machine.source.parameters = {{Kind::blocks}, {Kind::workspace}};
  const Device device = machine.open();
  const Tensor<f32, 1> y(device, {4});
  const auto grid = grid_kernel();
  Calls calls = machine.calls_of([&] { launch(device.stream(), grid, y, 1 << 14, 1 << 15, 1); });
  CHECK(std::count(calls.begin(), calls.end(), "cuFuncSetAttribute shared 102400") == 1);
  CHECK(calls.end()[-3] == "cuMemAllocAsync 264000 stream2");
  CHECK(calls.end()[-2] == "cuLaunchKernel entry stream2");
  CHECK(calls.end()[-1] == "cuMemFreeAsync stream2");
  calls = machine.calls_of([&] { launch(device.stream(), grid, y, 5, 2, 1); });
  CHECK(calls == Calls{"cuMemAllocAsync 10000 stream2", "cuLaunchKernel entry stream2", "cuMemFreeAsync stream2"});
  REQUIRE(machine.fake.launches.size() == 2);
  CHECK(machine.fake.launches[0].grid == 264);
  CHECK(machine.fake.launches[0].shared_bytes == 100 << 10);
  CHECK(read<std::int32_t>(machine.fake.launches[0].parameters, 0) == 1 << 29);
  CHECK(machine.fake.launches[1].grid == 10);

  // When captured, the workspace is part of the graph.
  calls = machine.calls_of([&] { device.stream().capture([&] { launch(device.stream(), grid, y, 5, 2, 1); }); });
  CHECK(std::count(calls.begin(), calls.end(), "record cuMemAllocAsync 10000 stream2") == 1);
  CHECK(std::count(calls.begin(), calls.end(), "record cuMemFreeAsync stream2") == 1);

  machine.fake.fail["cuMemAllocAsync"] = 2;
  CHECK(says(error_of([&] { launch(device.stream(), grid, y, 5, 2, 1); }), {"'grid'", "workspace", "free tensors"}));
  machine.fake.fail = {{"cuLaunchKernel", 701}};
  const std::size_t before = machine.fake.memory.size();
  CHECK(says(error_of([&] { launch(device.stream(), grid, y, 5, 2, 1); }), {"'grid'", "cuLaunchKernel", "tiles"}));
  CHECK(machine.fake.memory.size() == before);
}

TEST_CASE("code that the driver rejects is compiled once more", "[jit]") {
  Machine machine;
  machine.image = "refused once";
  const Device device = machine.open();
  const Tensor<f32, 1> x(device, {4}), y(device, {4});
  launch(device.stream(), copy_kernel(), x, y);
  CHECK(machine.recompiled == 1);
  CHECK(machine.fake.launches.size() == 1);
  machine.image = "refused always";
  const auto copy = copy_kernel();
  for (int i = 0; i < 2; ++i)
    CHECK(
        says(error_of([&] { launch(device.stream(), copy, x, y); }),
             {"cuda:0", "kernel 'copy'", "ptxas has words too", "cuModuleLoadDataEx", "NO_BINARY_FOR_GPU", "update"}));
  CHECK(machine.recompiled == 3);
  machine.fake.fail["cuModuleLoadDataEx"] = 2;  // which compiling again does not fix
  CHECK(says(error_of([&] { launch(device.stream(), copy, x, y); }), {"OUT_OF_MEMORY"}));
  CHECK(machine.recompiled == 3);
}

TEST_CASE("a kernel's failure names it wherever it is detected", "[jit]") {
  const char* const calls[] = {"cuStreamSynchronize", "cuLaunchKernel", "cuMemcpyAsync", "cuMemAllocAsync",
                               "cuEventSynchronize"};
  for (const std::string call : calls) {
    INFO(call);
    Machine machine;
    const Device device = machine.open();
    const Stream stream = device.stream();
    const Tensor<f32, 1> x(device, {4}), y(device, {4});
    launch(stream, copy_kernel(), x, y);
    const Event event = stream.record();
    const auto other = grid_kernel();
    const auto act = [&] {
      if (call == "cuLaunchKernel") launch(stream, other, y, 1, 1, 1);
      if (call == "cuStreamSynchronize") stream.synchronize();
      if (call == "cuMemcpyAsync") x.to_vector();
      if (call == "cuMemAllocAsync") device.allocate(1);
      if (call == "cuEventSynchronize") event.synchronize();
    };
    machine.fake.fail[call] = 700;
    CHECK(says(error_of(act), {"kernel 'copy' or one launched before it", call, "illegal memory access", "DEBUG"}));
    machine.fake.fail = {{"cuStreamSynchronize", 700}, {"cuMemAllocAsync", 700}};
    CHECK(says(error_of([&] { stream.synchronize(); }), {"this process lost the GPU", "'copy'", call}));
    CHECK(says(error_of([&] { device.allocate(1); }), {"this process lost the GPU", "'copy'", call}));
  }
}

TEST_CASE("reports of kernels appear when the host waits for work, and the GPU continues", "[jit]") {
  Machine machine;
  machine.source.parameters = {{Kind::reports}};
  {
    const Device device = machine.open();
    const auto checks = kernel("checks", [](In<i32, 1> x) { check(load(x, {0}, {1}) == 0, "a zero"); });
    const Tensor<i32, 1> x(device, {1});
    const Stream stream = device.new_stream();
    launch(stream, checks, x);
    const auto board = read<std::uint64_t>(machine.fake.launches.back().parameters, 0);
    auto* const words = reinterpret_cast<std::uint32_t*>(board);
    CHECK(machine.fake.pinned == 1);
    const Event event = stream.record();
    const std::function<void()> waits[] = {[&] { stream.synchronize(); }, [&] { event.synchronize(); },
                                           [&] { device.stream().synchronize(); }, [&] { x.to_vector(); }};
    for (const auto& wait : waits) {
      CHECK(error_of(wait) == "(no error)");
      words[board::failed] = 1, words[board::block] = 6;
      CHECK(says(error_of(wait), {"kernel 'checks', ", "test_device.cpp:", "check failed: a zero (block 6)"}));
      CHECK(error_of(wait) == "(no error)");
    }
    launch(stream, checks, x);
    CHECK(read<std::uint64_t>(machine.fake.launches.back().parameters, 0) == board);
  }
  CHECK(machine.fake.pinned == 0);
}

TEST_CASE("TESSERA_DEBUG waits for each launch", "[jit]") {
  Machine machine;
  machine.synchronous = true;
  const Device device = machine.open();
  const Stream stream = device.stream();
  const Tensor<f32, 1> x(device, {4}), y(device, {4});
  const auto copy = copy_kernel();
  launch(stream, copy, x, y);
  CHECK(machine.fake.calls.back() == "cuStreamSynchronize stream2");
  CHECK(error_of([&] { stream.capture([&] { launch(stream, copy, x, y); }); }) == "(no error)");
  machine.fake.fail["cuStreamSynchronize"] = 700;
  CHECK(says(error_of([&] { launch(stream, copy, x, y); }), {"kernel 'copy'"}));
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
