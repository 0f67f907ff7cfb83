// Lesson 1: vector addition. c = a + b, for vectors of any length.
//
// A kernel is a C++ lambda whose parameters are tensors: an In is read, an Out is written, and each has an element type
// and a rank. The lambda describes the work of one CTA (a thread block), and blocks(...) sets the number of CTAs in the
// grid. A CTA computes on tiles: arrays whose extents are fixed when the kernel is made. You write no code for
// individual threads; the generator distributes each tile over the threads of the CTA.
//
// load and store are indexed in tiles: {i} is the i-th tile, which begins at element i * size. Both handle the bounds
// of the tensor: elements past the end are read as 0 and never written, so the last, partial tile needs no special
// case.
//
// Run with --print to see the graph. The lambda runs only once, when the kernel is made, and records these operations.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include <tessera/tessera.hpp>
#include "lesson.hpp"

using namespace tessera;

auto vector_add(int size) {
  return kernel("vector_add", [=](In<f32, 1> a, In<f32, 1> b, Out<f32, 1> c) {
    same_extents(a, b, c);
    Index i = blocks(cdiv(c.extent(0), size));
    store(c, {i}, load(a, {i}, {size}) + load(b, {i}, {size}));
  });
}

std::vector<f32> random_values(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<f32> uniform(-1, 1);
  std::vector<f32> values(static_cast<std::size_t>(count));
  for (f32& value : values) value = uniform(generator);
  return values;
}

bool correct(const Device& device, const auto& add, std::int64_t count) {
  const auto a = random_values(count, 1), b = random_values(count, 2);

  // Tensors are allocated on the device. A launch is type-checked like a function call.
  Tensor<f32, 1> device_a(device, {count}), device_b(device, {count}), device_c(device, {count});
  device_a.copy_from(a);
  device_b.copy_from(b);
  launch(device.stream(), add, device_a, device_b, device_c);
  const auto c = device_c.to_vector();

  double worst = 0;
  for (std::size_t i = 0; i < c.size(); ++i) {
    const double error = std::abs(c[i] - (static_cast<double>(a[i]) + b[i]));
    if (!(error <= worst)) worst = std::isnan(error) ? inf : error;
  }
  const double allowed = 6e-8;  // one rounding error: half a unit in the last of 24 bits, for a sum below 2
  std::printf("01_vector_add: %lld elements: max error %.1e (allowed %.0e)\n", static_cast<long long>(count), worst,
              allowed);
  return worst <= allowed;
}

int main(int argc, char** argv) {
  const auto graph = [] { return to_string(vector_add(4096).graph()); };
  return run_lesson(argc, argv, "01_vector_add", graph, [] {
    const auto add = vector_add(4096);
    const Device device = Device::best();  // a GPU if there is one, otherwise the CPU
    bool ok = true;
    for (std::int64_t count : {1, 4096, 1000003}) ok &= correct(device, add, count);
    return ok;
  });
}
