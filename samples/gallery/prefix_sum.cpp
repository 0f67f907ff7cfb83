// Prefix sum of a long vector in three kernels: the sum of each part, the exclusive prefix sum of these sums, and the
// prefix sum within each part, to which the sum of all earlier parts is added.
#include "gallery/gallery.hpp"

namespace gallery {

auto sums_of_parts(int size) {
  return kernel("sums_of_parts", [=](In<f32, 1> x, Out<f32, 1> sums) {
    require(sums.extent(0) == cdiv(x.extent(0), size), "a sum for each part");
    Index part = blocks(sums.extent(0));
    store(sums, {part}, sum(load(x, {part}, {size}), 0));
  });
}

auto sums_ahead(int most) {
  return kernel("sums_ahead", [=](In<f32, 1> sums, Out<f32, 1> ahead) {
    require(sums.extent(0) <= most, "as many parts as one tile has");
    same_extents(sums, ahead);
    store(ahead, {0}, cumsum(load(sums, {0}, {most}), 0, {.exclusive = true}));
  });
}

auto sums_within(int size) {
  return kernel("sums_within", [=](In<f32, 1> x, In<f32, 1> ahead, Out<f32, 1> y) {
    require(ahead.extent(0) == cdiv(x.extent(0), size), "a sum for each part");
    same_extents(x, y);
    Index part = blocks(ahead.extent(0));
    store(y, {part}, load(ahead, {part}, {1}) + cumsum(load(x, {part}, {size}), 0));
  });
}

const Example prefix_sum_example("prefix_sum", 5e-5, [](const Device& device) {
  const int count = 10007, size = 1024, parts = cdiv(count, size);
  const auto values = normal_values(count, 1);
  const auto x = tensor_of(device, {count}, values), y = device.tensor<f32>({count});
  const auto sums = device.tensor<f32>({parts}), ahead = device.tensor<f32>({parts});
  launch(device.stream(), sums_of_parts(size), x, sums);
  launch(device.stream(), sums_ahead(1024), sums, ahead);
  launch(device.stream(), sums_within(size), x, ahead, y);

  std::vector<double> expected;
  double sum = 0;
  for (const f32 value : values) expected.push_back(sum += value);
  return largest_error(y, expected);
});

}  // namespace gallery
