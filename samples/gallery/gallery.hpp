// Shared by the programs of the gallery: random data, tensors made of it, and the comparison of results with a
// reference.
#pragma once
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

namespace gallery {

using namespace tessera;

/// A program of the gallery. `check` runs it on a device and returns the largest error of its results; an error above
/// `allowed` is a failure.
struct Example {
  Example(std::string name, double allowed, double (*check)(const Device&));
};

/// Normally distributed values; equal seeds give equal values.
std::vector<f32> normal_values(std::int64_t count, unsigned seed);
/// Integers in [0, below).
std::vector<i32> random_integers(std::int64_t count, i32 below, unsigned seed);

/// The largest error: relative where the expected value is above 1 in magnitude, absolute elsewhere. A NaN and a
/// difference in size are infinite errors.
double largest_error(const std::vector<double>& results, const std::vector<double>& expected);

/// The same for the elements of a tensor.
template <class T, int R>
double largest_error(const Tensor<T, R>& tensor, const std::vector<double>& expected) {
  const std::vector<T> values = tensor.to_vector();
  return largest_error(std::vector<double>(values.begin(), values.end()), expected);
}

/// A tensor on `device` with a copy of `values`.
template <class T, std::size_t R>
Tensor<T, static_cast<int>(R)> tensor_of(const Device& device, const std::int64_t (&extents)[R],
                                         const std::vector<T>& values) {
  auto tensor = device.tensor<T>(extents);
  tensor.copy_from(values);
  return tensor;
}

}  // namespace gallery
