// Devices and launches on a real GPU; against a fake driver they are in tests/jit.
#include <chrono>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

#include "codegen/kernel_source.hpp"
#include "jit/compile/compiler.hpp"
#include "jit/cuda/cuda_devices.hpp"
#include "jit/cuda/tensor_maps.hpp"
#include "support/catch.hpp"
#include "support/role_plans.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_gpu {

using namespace tessera::internal;

namespace {

std::optional<Device> gpu() {
  try {
    return Device(CudaDevices::instance().first());
  } catch (const Error& error) {
    WARN("skipped: " << error.what());
    return {};
  }
}

auto increment_kernel() {
  return kernel("increment", [](InOut<i32, 1> x) {
    Index i = blocks(cdiv(x.extent(0), 1024));
    Tile value = load(x, {i}, {1024});
    store(x, {i}, value + 1);
  });
}

constexpr std::int64_t large = 10'000'000;

/// 0, 1, 2, ... on a device, and whether a tensor holds that plus `more`.
Tensor<i32, 1> numbers(const Device& device) {
  std::vector<i32> values(large);
  std::iota(values.begin(), values.end(), 0);
  Tensor<i32, 1> x(device, {large});
  x.copy_from(values);
  return x;
}
bool holds(const Tensor<i32, 1>& x, int more) {
  const std::vector<i32> values = x.to_vector();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != static_cast<i32>(i) + more) return false;
  return true;
}

}  // namespace

TEST_CASE("a GPU's memory holds copied data, and is released", "[cuda]") {
  const auto device = gpu();
  if (!device) return;
  CHECK(device->name().starts_with("cuda:"));
  CHECK(device->info().multiprocessors > 0);
  CHECK(device->info().l2_bytes > 0);
  for (int i = 0; i < 300; ++i) {  // more than available, if it were not released
    const auto memory = device->allocate(std::size_t(2) << 30);
    CHECK(reinterpret_cast<std::uintptr_t>(memory.get()) % 64 == 0);
  }
  CHECK(holds(numbers(*device), 0));
  CHECK(says(error_of([&] { device->allocate(std::size_t(1) << 50); }), {"no memory left", "MB are free"}));
  static Tensor<i32, 1> until_the_end = numbers(*device);  // freed when the process ends
  CHECK(until_the_end.data() != nullptr);
}

TEST_CASE("a GPU's kernels run in order and outlive their arguments", "[cuda]") {
  const auto device = gpu();
  if (!device) return;
  const Tensor<i32, 1> x = numbers(*device);
  const Stream owner = device->new_stream();
  for (const Stream& stream :
       {device->stream(), device->new_stream(), device->stream_from(nullptr), device->stream_from(owner.native())})
    for (int i = 0; i < 5; ++i) {
      const Tensor<i32, 1> temporary = numbers(*device);  // freed while its launch runs
      launch(stream, increment_kernel(), temporary);
      launch(stream, increment_kernel(), x);
      stream.synchronize();
    }
  CHECK(holds(x, 20));
}

TEST_CASE("a GPU's events measure and order", "[cuda]") {
  const auto device = gpu();
  if (!device) return;
  const Stream stream = device->stream(), other = device->new_stream();
  const Tensor<i32, 1> x = numbers(*device);
  const auto increment = increment_kernel();
  launch(stream, increment, x);
  const Event begin = stream.record();
  for (int i = 0; i < 100; ++i) launch(stream, increment, x);
  const Event end = stream.record();
  other.wait(end);
  launch(other, increment, x);
  CHECK(holds(x, 102));
  const double milliseconds = end.milliseconds_since(begin);
  CHECK(milliseconds > 0.01);
  CHECK(milliseconds < 10'000);
}

TEST_CASE("a GPU's captured graph runs as often as it is launched", "[cuda]") {
  const auto device = gpu();
  if (!device) return;
  const auto increment = increment_kernel();
  for (const Stream& stream : {device->stream(), device->new_stream()}) {
    const Tensor<i32, 1> x = numbers(*device);
    launch(stream, increment, x);
    const auto pinned = device->pinned(4);
    const CapturedGraph graph = stream.capture([&] {
      for (int i = 0; i < 3; ++i) launch(stream, increment, x);
      const auto unused = device->allocate(1000);
      stream.copy(pinned.get(), x.data(), 4);
    });
    CHECK(holds(x, 1));
    for (int i = 0; i < 4; ++i) stream.launch(graph);
    stream.synchronize();
    CHECK(*static_cast<i32*>(pinned.get()) == 13);
    CHECK(holds(x, 13));
    CHECK(says(error_of([&] { stream.capture([&] { stream.synchronize(); }); }), {"records"}));
    launch(stream, increment, x);
    CHECK(holds(x, 14));
  }
}

TEST_CASE("a GPU's launches prefetch nothing that earlier launches write", "[cuda]") {
  const auto device = gpu();
  if (!device) return;
  constexpr std::int64_t rows = 64, columns = 2048, depth = 1024;
  const auto set = kernel("set", [](Out<bf16, 2> w, Scalar<f32> value) {
    auto [i, j] = blocks(cdiv(w.extent(0), 64), cdiv(w.extent(1), 64));
    store(w, {i, j}, broadcast(cast<bf16>(value), {64, 64}));
  });
  const auto product = kernel("product", [](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
    Var acc = zeros<f32>({64, 64});
    for (Index k : range(cdiv(x.extent(1), 64))) acc = mma(load(x, {m, k}, {64, 64}), load(w, {k, n}, {64, 64}), acc);
    store(y, {m, n}, acc);
  });
  const Tensor<bf16, 2> x(*device, {rows, depth});
  std::vector<Tensor<bf16, 2>> weights;
  for (int i = 0; i < 3; ++i) weights.emplace_back(*device, std::array{depth, columns});
  constexpr std::size_t products = 100;
  const Tensor<f32, 2> y(*device, {static_cast<std::int64_t>(products) * rows, columns});
  std::mt19937 random(1);
  for (const bool recorded : {false, true}) {
    const Stream stream = device->new_stream();
    std::array<float, 3> holds{};
    std::vector<float> expected;
    const auto run = [&] {
      launch(stream, set, x, 1.0f);
      for (std::size_t i = 0; i < 3; ++i) launch(stream, set, weights[i], holds[i] = static_cast<float>(i));
      while (expected.size() < products) {
        const std::size_t i = random() % 3;
        if (random() % 3 == 0) {
          launch(stream, set, weights[i], holds[i] = static_cast<float>(random() % 50));
        } else {
          launch(stream, product, x, weights[i], y.slice(0, static_cast<std::int64_t>(expected.size()) * rows, rows));
          expected.push_back(holds[i] * depth);
        }
      }
    };
    if (recorded) {
      const CapturedGraph graph = stream.capture(run);
      for (int i = 0; i < 3; ++i) stream.launch(graph);
    } else {
      run();
    }
    stream.synchronize();
    const std::vector<float> got = y.to_vector();
    int wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] != expected[i / (rows * columns)];
    INFO("recorded " << recorded);
    CHECK(wrong == 0);
  }
}

TEST_CASE("a GPU accepts memory of others", "[cuda]") {
  const auto device = gpu();
  if (!device) return;
  const auto driver = std::make_shared<cuda::Driver>(cuda::Driver::open(std::vector<std::string>{"libcuda.so.1"}));
  const cuda::PrimaryContext context(driver, 0);
  const cuda::ContextScope scope(context);
  cuda::CUdeviceptr address = 0;
  driver->run(driver->cuMemAlloc, &address, std::size_t{large * 4});
  {
    const Tensor<i32, 1> mine(*device, reinterpret_cast<i32*>(address), {large}, {1}), x = numbers(*device);
    device->stream().copy(mine.data(), x.data(), large * 4);
    launch(device->stream(), increment_kernel(), mine);
    CHECK(holds(mine, 1));
  }
  driver->run(driver->cuMemFree, address);
}

TEST_CASE("a GPU is used from several threads", "[cuda]") {
  const auto device = gpu();
  if (!device) return;
  const auto increment = increment_kernel();
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const Stream stream = t % 2 ? device->new_stream() : device->stream();
      for (int i = 0; i < 10; ++i) {
        const Tensor<i32, 1> x = numbers(*device);
        for (int j = 0; j < 5; ++j) launch(stream, increment, x);
        right += holds(x, 5);
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 40);
}

TEST_CASE("a GPU's driver encodes maps of all TMA-addressable tensors", "[cuda]") {
  const auto device = gpu();
  if (!device) return;
  const auto backend = std::dynamic_pointer_cast<CudaBackend>(CudaDevices::instance().first());
  REQUIRE(backend);
  if (backend->info().arch->major < 9) return;
  const auto memory = device->allocate(1 << 20);
  const cuda::ContextScope scope(backend->context());
  using Numbers = std::array<std::int64_t, max_rank>;
  struct Case {
    int rank;
    Numbers extents, strides;
    std::array<std::int8_t, 5> axes;
  };
  const std::int64_t far = (std::int64_t(1) << 37) - 16, longest = (std::int64_t(1) << 31) - 1;
  const Case cases[] = {
      {1, {500}, {1}, {0, -1, -1, -1, -1}},
      {2, {64, 128}, {128, 1}, {1, 0, -1, -1, -1}},
      {2, {128, 64}, {1, 128}, {0, 1, -1, -1, -1}},
      {2, {64, 7}, {16, 1}, {1, 0, -1, -1, -1}},             // shorter than the box
      {2, {64, 128}, {16, 1}, {1, 0, -1, -1, -1}},           // rows overlap
      {2, {1, 128}, {0, 1}, {1, 0, -1, -1, -1}},             // one row
      {2, {64, 1}, {128, 1}, {1, 0, -1, -1, -1}},            // one column
      {2, {1, 1}, {1, 1}, {1, 0, -1, -1, -1}},               // one element
      {2, {64, 128}, {far, 1}, {1, 0, -1, -1, -1}},          // rows far apart
      {2, {longest, longest}, {16, 1}, {1, 0, -1, -1, -1}},  // of many elements
      {3, {16, 64, 32}, {32, 512, 1}, {2, 1, 0, -1, -1}},    // strides that do not grow
      {3, {4, 1, 128}, {128, 5, 1}, {2, 1, 0, -1, -1}},
      {5, {2, 3, 4, 5, 16}, {960, 320, 80, 16, 1}, {4, 3, 2, 1, 0}},
  };
  for (const ElementType type :
       {ElementType::u8, ElementType::i8, ElementType::f8e4m3, ElementType::f8e5m2, ElementType::i16, ElementType::u16,
        ElementType::i32, ElementType::u32, ElementType::i64, ElementType::u64, ElementType::f64, ElementType::f16,
        ElementType::f32, ElementType::bf16})
    for (const Case& c : cases) {
      Argument argument{.data = memory.get(), .extent = c.extents, .stride = c.strides};
      Graph graph;
      graph.name = "boxes";
      graph.parameters = {{.access = Access::in, .type = type, .rank = c.rank}};
      CHECK(classify(graph.parameters[0], argument).tma_addressable);
      const TmaTensor tma_tensors{
          .axes = c.axes, .box = {16 / info(type).bytes, 8, 1, 1, 1}, .to_tf32 = type == ElementType::f32};
      TensorMaps maps(*backend, graph, {{tma_tensors, 0}});
      alignas(64) std::array<std::byte, 128> block{};
      CHECK(error_of([&] { maps.write(std::span(&argument, 1), block.data()); }) == "(no error)");
      CHECK(std::ranges::count(block, std::byte{0}) < 128);
    }
}

TEST_CASE("a GPU computes a matmul by TMA and wgmma", "[cuda]") {
  const auto found = gpu();
  if (!found || found->info().arch->major != 9) return;
  for (const RoleTile& tile : role_tiles) {
    CudaSettings settings;
    settings.compile = settings.recompile = [&](const Graph&, const Variant&, Arch arch) {
      return Compiler::instance().compile(kernel_source(warp_specialized_matmul(tile)), arch);
    };
    const Device device(CudaDevices({"libcuda.so.1"}, settings).first());
    const auto product = kernel("product", [&](In<bf16, 2> a, In<bf16, 2> b, Out<bf16, 2> c) {
      auto [i, j] = blocks(cdiv(c.extent(0), tile.m), cdiv(c.extent(1), tile.n));
      Var sums = zeros<f32>({tile.m, tile.n});
      for (Index k : range(cdiv(a.extent(1), 64))) {
        const Tile left = load(a, {i, k}, {tile.m, 64});
        if (tile.b_along_n)
          sums = mma(left, load(b, {k, j}, {64, tile.n}), sums);
        else
          sums = mma(left, transpose(load(b, {j, k}, {tile.n, 64})), sums);
      }
      store(c, {i, j}, cast<bf16>(sums));
    });
    using Shape = std::array<std::int64_t, 3>;
    for (const auto& [m, n, k] : {Shape{8, 24, 40}, Shape{200, 304, 328}, Shape{2000, 3000, 264}}) {
      INFO(m << " x " << n << " x " << k << ", tiles of " << tile.m << " x " << tile.n);
      // Rows have gaps between them, which must stay unchanged.
      const auto apart = [](std::int64_t length) { return (length + 7) / 8 * 8 + 8; };
      const std::int64_t rows = tile.b_along_n ? k : n, columns = tile.b_along_n ? n : k;  // of b
      const auto filled = [](std::int64_t size) {                                          // sums of products are exact
        std::vector<bf16> values(static_cast<std::size_t>(size));
        int number = 0;
        for (bf16& value : values) value = bf16(static_cast<float>(number++ * 7 % 61 - 30) / 8);
        return values;
      };
      const auto run = [&](const Device& on) {
        const Tensor<bf16, 2> a(on, {m, apart(k)}), b(on, {rows, apart(columns)}), c(on, {m, apart(n)});
        for (const auto* tensor : {&a, &b, &c}) tensor->copy_from(filled(tensor->size()));
        for (int i = 0; i < 2; ++i)
          launch(on.stream(), product, a.slice(1, 0, k), b.slice(1, 0, columns), c.slice(1, 0, n));
        std::vector<std::uint16_t> bits;
        for (const bf16 value : c.to_vector()) bits.push_back(value.bits);
        return bits;
      };
      CHECK(run(device) == run(Device::cpu()));
    }
  }
}

TEST_CASE("a launch on a GPU takes the host little time", "[cuda]") {
  const auto device = gpu();
  if (!device) return;
  const Stream stream = device->stream();
  const auto increment = increment_kernel();
  const Tensor<i32, 1> x(*device, {1024});
  double best = 1e9;  // microseconds
  for (int round = 0; round < 20; ++round) {
    constexpr int launches = 200;  // fewer than a stream queues, so that the host never waits
    stream.synchronize();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < launches; ++i) launch(stream, increment, x);
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    best = std::min(best, time.count() / launches);
  }
  INFO(best << " us");
  CHECK(best < 10);
}

}  // namespace test_gpu
