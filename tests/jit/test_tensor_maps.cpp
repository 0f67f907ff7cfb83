// Tensor maps of launches, against a fake driver.
#include <algorithm>
#include <chrono>
#include <latch>
#include <thread>

#include "jit/cuda/tensor_maps.hpp"
#include "support/catch.hpp"
#include "support/fake_gpu.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_tensor_maps {

using namespace tessera::internal;
using namespace fake_gpu;

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

}  // namespace test_tensor_maps
