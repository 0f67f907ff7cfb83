// How the emulator handles an endless while_, and large tensors.
#include <cstddef>
#include <fstream>

#include "emulator/mapping.hpp"
#include "support/catch.hpp"
#include "support/emulated_device.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_emulated_while {

using namespace tessera::internal;

TEST_CASE("the emulator reports a while_ that does not end", "[emulator]") {
  const auto k = kernel("endless", [](InOut<i32, 1> x) {
    Var n = constant<i32>(1);
    while_([&] { return n > 0; }, [&] { n = n % 7 + 1; });
    store(x, {0}, reshape(n, {1}));
  });
  Device device = emulated_device();
  const Tensor<i32, 1> x = device.tensor<i32>({1});
  const std::string said = error_of([&] { launch(device.stream(), k, x); });
  CHECK(said.find("a while_ has not ended after 1048576 iterations") != said.npos);
}

TEST_CASE("untouched parts of a large tensor take no memory", "[emulator]") {
  const std::size_t bytes = std::size_t{1} << 29;
  const emulator::Mapping memory(bytes);
  const auto k = kernel("end", [](In<u8, 1> x, Out<u8, 1> y) {
    Index last = cdiv(x.extent(0), 64) - 1;
    store(y, {0}, cast<u8>(cast<i32>(load(x.slice(0, 1, 64), {0}, {64})) + cast<i32>(load(x, {last}, {64}))));
  });
  Device device = emulated_device();
  auto* const data = reinterpret_cast<u8*>(memory.data());
  data[64] = 1, data[bytes - 1] = 2;
  const Tensor<u8, 1> x(device, data, {static_cast<std::int64_t>(bytes)}, {1}), y(device, {64});
  launch(device.stream(), k, x, y);
  CHECK(y.to_vector()[63] == 3);
  const auto resident = [] {  // of this process, in pages
    std::ifstream file("/proc/self/statm");
    std::size_t all = 0, in_memory = 0;
    file >> all >> in_memory;
    return in_memory * 4096;
  };
  const std::size_t before = resident();
  launch(device.stream(), k, x, y);
  CHECK(resident() < before + bytes / 4);
}

}  // namespace test_emulated_while
