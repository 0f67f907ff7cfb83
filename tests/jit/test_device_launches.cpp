// Launches through a fake driver: code, parameters, grids, and how they share a GPU.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "support/catch.hpp"
#include "support/fake_gpu.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_device_launches {

using namespace tessera::internal;
using namespace fake_gpu;

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

namespace {

/// y [m,n] = x [m,k] w [k,n], by tiles of [extent,extent].
auto product_of(int extent, const Hints& wanted = {}) {
  return kernel("product", [=](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 2> y) {
    hints(wanted);
    auto [m, n] = blocks(cdiv(y.extent(0), extent), cdiv(y.extent(1), extent));
    Var acc = zeros<f32>({extent, extent});
    for (Index k : range(cdiv(x.extent(1), 64)))
      acc = mma(load(x, {m, k}, {extent, 64}), load(w, {k, n}, {64, extent}), acc);
    store(y, {m, n}, acc);
  });
}
void launch_product(const Device& device, const auto& product, std::int64_t m, std::int64_t n, std::int64_t k) {
  const Tensor<bf16, 2> x(device, {m, k}), w(device, {k, n});
  const Tensor<f32, 2> y(device, {m, n});
  launch(device.stream(), product, x, w, y);
}

}  // namespace

TEST_CASE("clusters of two CTAs multicast a right operand whose rows begin within sectors", "[jit]") {
  Machine machine;
  machine.source.persistent = true;
  machine.source.multicast = 2;
  machine.split_k = SplitKPolicy::none;
  const Device device = machine.open();
  const auto product = product_of(128);
  const auto launched = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    launch_product(device, product, m, n, k);
    return machine.fake.launches.back();
  };
  const FakeCuda::Launch full = launched(4096, 4104, 4096);
  CHECK(machine.compiled.back().multicast);
  CHECK(full.cluster == 2);
  CHECK(full.grid == 132);
  const FakeCuda::Launch few = launched(640, 392, 4096);  // three pairs of rows, the last of one tile, by four columns
  CHECK(few.cluster == 2);
  CHECK(few.grid == 3 * 4 * 2);
  CHECK(machine.compiled.size() == 1);
  launched(4096, 4096, 4096);
  CHECK_FALSE(machine.compiled.back().multicast);
  // Where no cluster of two fits, there is none.
  {
    const Device part = machine.open();
    const Tensor<bf16, 2> x(part, {4096, 4096}), w(part, {4096, 4104});
    const Tensor<f32, 2> y(part, {4096, 4104});
    machine.fake.devices[0].multiprocessors = 1;
    launch(part.stream(), product, x, w, y);
    machine.fake.devices[0].multiprocessors = 132;
    CHECK_FALSE(machine.compiled.back().multicast);
    CHECK(machine.fake.launches.back().cluster == 1);
  }
  // A kernel that cannot multicast is launched normally.
  machine.source.multicast = 1;
  const Device other = machine.open();
  const Tensor<bf16, 2> x(other, {4096, 4096}), w(other, {4096, 4104});
  const Tensor<f32, 2> y(other, {4096, 4104});
  launch(other.stream(), product, x, w, y);
  CHECK(machine.compiled.back().multicast);
  CHECK(machine.fake.launches.back().cluster == 1);
}

TEST_CASE("clusters split a matmul's k-iterations where the grid has few CTAs", "[jit]") {
  Machine machine;
  machine.source.persistent = true;
  machine.source.split_k = SplitK::cluster;
  const Device device = machine.open();
  const auto product = product_of(64);
  const auto launched = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    launch_product(device, product, m, n, k);
    return machine.fake.launches.back();
  };
  const FakeCuda::Launch shared = launched(16, 768, 3072);
  CHECK(machine.compiled.back().split_k == SplitK::cluster);
  CHECK(shared.cluster == 6);
  CHECK(shared.grid == 12 * 6);
  CHECK(machine.fake.count("cuLaunchKernelEx entry") == 1);
  CHECK(launched(16, 768, 1280).cluster == 4);
  CHECK(launched(16, 768, 3072).cluster == 6);
  CHECK(launched(16, 1408, 12800).cluster == 5);  // 22 tiles: at most 16 clusters of 6 are resident at a time
  CHECK(machine.compiled.size() == 1);
  CHECK(launched(16, 768, 768).cluster == 1);
  CHECK(machine.compiled.back().split_k == SplitK::none);
  CHECK(machine.fake.count("cuLaunchKernel entry") == 1);
  const FakeCuda::Launch full = launched(512, 768, 3072);  // 96 CTAs on 132 multiprocessors
  CHECK(full.cluster == 1);
  CHECK(full.grid == 96);
  CHECK(machine.compiled.size() == 2);
  // A hint fixes the order of sums, for any extents.
  launch_product(device, product_of(64, {.deterministic = true}), 16, 768, 3072);
  CHECK(machine.compiled.back().split_k == SplitK::none);
  CHECK(machine.fake.launches.back().cluster == 1);
  // A kernel of larger tiles has as many of them, and as many k-iterations.
  const auto larger = product_of(128);
  const Tensor<bf16, 2> left(device, {16, 3072}), right(device, {3072, 1536});
  const Tensor<f32, 2> out(device, {16, 1536});
  // It takes the place of the first one among the launches that a thread keeps.
  CHECK(launched(16, 768, 3072).cluster == 6);
  const Tensor<f32, 1> one(device, {1});
  for (int i = 1; i < 64; ++i)
    launch(device.stream(), kernel("another", [](Out<f32, 1> y) { store(y, {blocks(1)}, zeros<f32>({1})); }), one);
  launch(device.stream(), larger, left, right, out);
  CHECK(machine.fake.launches.back().cluster == 4);
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
  const auto product = product_of(128);
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

TEST_CASE("a GPU says how much memory is free, after its pool gave back what it kept", "[jit]") {
  Machine machine;
  const Device device = machine.open();
  const std::size_t before = device.free_bytes().value();
  const Tensor<f32, 1> x(device, {1 << 18});
  CHECK(device.free_bytes() == before - (1 << 20));
  const int trims = machine.fake.count("cuMemPoolTrimTo");
  device.free_bytes(1 << 20);
  CHECK(machine.fake.count("cuMemPoolTrimTo") == trims);
  device.free_bytes(before);
  CHECK(machine.fake.count("cuMemPoolTrimTo") == trims + 1);
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

TEST_CASE("a multiprocessor runs equal shares of the CTAs of a launch that begins early, if they are few", "[jit]") {
  Machine machine;
  machine.source.waits_for_previous = true;
  const Device device = machine.open();
  const int multiprocessors = device.info().multiprocessors;
  // Is a launch of so many CTAs early, and how much shared memory does a CTA request?
  const auto launched = [&](int blocks, int shared_bytes) {
    machine.source.shared_bytes = shared_bytes;
    const auto k =
        kernel("k", [](Out<f32, 1> y) { store(y, {tessera::blocks(cdiv(y.extent(0), 4))}, zeros<f32>({4})); });
    const Tensor<f32, 1> y(device, {4 * blocks});
    const Stream stream = device.new_stream();
    launch(stream, k, y);
    CHECK_FALSE(machine.fake.launches.back().early);  // the first of a stream
    CHECK(machine.fake.launches.back().shared_bytes == static_cast<unsigned>(shared_bytes));
    launch(stream, k, y);
    CHECK(machine.fake.launches.back().early);
    return machine.fake.launches.back().shared_bytes;
  };
  constexpr unsigned all = 228U << 10;  // of a multiprocessor
  CHECK(launched(1, 0) == all / 2 + 1);
  CHECK(launched(multiprocessors, 0) == all / 2 + 1);
  CHECK(launched(multiprocessors + 1, 0) == all / 3 + 1);
  CHECK(launched(2 * multiprocessors, 100) == all / 3 + 1);
  CHECK(launched(3 * multiprocessors, 0) == all / 4 + 1);
  CHECK(launched(3 * multiprocessors + 1, 100) == 100);
  CHECK(launched(multiprocessors, 200 << 10) == 200U << 10);
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
    CHECK(error_of([&] {
      stream.capture([&] {
        launch(stream, copy, weights, a);
        throw Error("no more");
      });
    }) == "no more");
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

}  // namespace test_device_launches
