// Failures of a GPU, against a fake driver: code that it rejects, kernels that fail, what kernels report.
#include <functional>

#include "support/catch.hpp"
#include "support/fake_gpu.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_device_failures {

using namespace tessera::internal;
using namespace fake_gpu;

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
      CHECK(says(error_of(wait), {"kernel 'checks', ", "test_device_failures.cpp:", "check failed: a zero (block 6)"}));
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

}  // namespace test_device_failures
