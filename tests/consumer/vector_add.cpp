// A program of a project that uses Tessera: it runs a kernel, on the CPU or in the emulator.
#include <cstdio>
#include <vector>

#include <tessera/tessera.hpp>

using namespace tessera;

int sum_of_names();  // names.cpp

int main() {
  const auto add = kernel("vector_add", [](In<f32, 1> a, In<f32, 1> b, Out<f32, 1> c) {
    Index i = blocks(cdiv(c.extent(0), 64));
    store(c, {i}, load(a, {i}, {64}) + load(b, {i}, {64}));
  });
  const Device device = Device::best();
  const std::vector<f32> ones(1000, 1.0f), twos(1000, 2.0f);
  Tensor<f32, 1> a(device, {1000}), b(device, {1000}), c(device, {1000});
  a.copy_from(ones);
  b.copy_from(twos);
  launch(device.stream(), add, a, b, c);
  const bool right = sum_of_names() == 7 && c.to_vector() == std::vector<f32>(1000, 3.0f);
  std::printf("%s: %s\n", device.name().c_str(), right ? "1 + 2 = 3" : "wrong");
  return right ? 0 : 1;
}
