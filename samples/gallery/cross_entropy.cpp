// Cross entropy between the softmax of each row and its target, and the gradient with respect to the logits, in one
// pass.
#include <algorithm>
#include <cmath>

#include "gallery/gallery.hpp"

namespace gallery {

auto cross_entropy(int width) {
  return kernel("cross_entropy", [=](In<f32, 2> logits, In<i32, 1> targets, Out<f32, 1> loss, Out<f32, 2> gradient) {
    require(logits.extent(1) <= width, "rows no wider than the kernel was made for");
    require(targets.extent(0) == logits.extent(0), "a target for each row");
    same_extents(targets, loss);
    same_extents(logits, gradient);
    Index row = blocks(logits.extent(0));
    Tile x = load(logits, {row, 0}, {1, width}, -inf);
    Tile target = load(targets, {row}, {1});
    check((target >= 0) & (target < logits.extent(1)), "targets among the classes");
    Tile hit = iota({1, width}, 1) == target;
    Tile shifted = x - max(x, 1), e = exp(shifted), total = sum(e, 1);
    store(loss, {row}, reshape(log(total) - sum(where(hit, shifted, 0), 1), {1}));
    store(gradient, {row, 0}, e / total - cast<f32>(hit));
  });
}

const Example cross_entropy_example("cross_entropy", 2e-6, [](const Device& device) {
  const int rows = 13, classes = 1000;
  const auto logits = normal_values(rows * classes, 1);
  const auto targets = random_integers(rows, classes, 2);
  const auto loss = device.tensor<f32>({rows});
  const auto gradient = device.tensor<f32>({rows, classes});
  launch(device.stream(), cross_entropy(1024), tensor_of(device, {rows, classes}, logits),
         tensor_of(device, {rows}, targets), loss, gradient);

  std::vector<double> expected_loss, expected_gradient;
  for (int row = 0; row < rows; ++row) {
    double total = 0;
    for (int i = 0; i < classes; ++i) total += std::exp(double{logits[row * classes + i]});
    expected_loss.push_back(std::log(total) - logits[row * classes + targets[row]]);
    for (int i = 0; i < classes; ++i)
      expected_gradient.push_back(std::exp(double{logits[row * classes + i]}) / total - (i == targets[row]));
  }
  return std::max(largest_error(loss, expected_loss), largest_error(gradient, expected_gradient));
});

}  // namespace gallery
