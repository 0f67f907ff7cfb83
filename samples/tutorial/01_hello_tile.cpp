// Lesson 1 of docs/tutorial: a whole program, without the random data and the checks of samples/01_vector_add.cpp.
// [program]
#include <cstdio>
#include <vector>

#include <tessera/tessera.hpp>

using namespace tessera;

auto vector_add(int size) {
  return kernel("vector_add", [=](In<f32, 1> a, In<f32, 1> b, Out<f32, 1> c) {
    same_extents(a, b, c);
    Index i = blocks(cdiv(c.extent(0), size));
    store(c, {i}, load(a, {i}, {size}) + load(b, {i}, {size}));
  });
}

int main() try {
  const auto add = vector_add(4096);     // traces the kernel
  const Device device = Device::best();  // a GPU if there is one, else the CPU
  const std::vector<f32> values{1, 2, 3};
  const auto a = device.tensor<f32>({3}, values), b = device.tensor<f32>({3}, values), c = device.tensor<f32>({3});
  launch(device.stream(), add, a, b, c);
  for (const f32 sum : c.to_vector()) std::printf("%g\n", sum);
} catch (const Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 1;
}
// [/program]
