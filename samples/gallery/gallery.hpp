// What the programs of the gallery share: random data, its way to a device, and the comparison with what is right.
#pragma once
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

namespace gallery {

using namespace tessera;

/// A program of the gallery, by its name: `check` runs it on a device and gives the largest error of its results.
struct Example {
  Example(std::string name, double allowed, double (*check)(const Device&));
};

/// Normally distributed numbers, the same ones of each seed.
std::vector<f32> normal_values(std::int64_t count, unsigned seed);
/// Integers in [0, below).
std::vector<i32> random_integers(std::int64_t count, i32 below, unsigned seed);

/// The largest difference, relative to results above 1.
double largest_error(const std::vector<double>& results, const std::vector<double>& expected);

/// The same of a tensor; a NaN is an infinite error.
template <class T, int R>
double largest_error(const Tensor<T, R>& tensor, const std::vector<double>& expected) {
  const std::vector<T> values = tensor.to_vector();
  return largest_error(std::vector<double>(values.begin(), values.end()), expected);
}

/// A tensor of these values.
template <class T, std::size_t R>
Tensor<T, static_cast<int>(R)> tensor_of(const Device& device, const std::int64_t (&extents)[R],
                                         const std::vector<T>& values) {
  auto tensor = device.tensor<T>(extents);
  tensor.copy_from(values);
  return tensor;
}

}  // namespace gallery
