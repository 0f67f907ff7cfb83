// Exercise 1: the sum of two matrices, with a grid of two axes.
#include "tutorial/solutions/solutions.hpp"

namespace solutions {

// [kernel]
auto add_matrices(int rows, int cols) {
  return kernel("add_matrices", [=](In<f32, 2> a, In<f32, 2> b, Out<f32, 2> c) {
    same_extents(a, b, c);
    auto [i, j] = blocks(cdiv(c.extent(0), rows), cdiv(c.extent(1), cols));
    store(c, {i, j}, load(a, {i, j}, {rows, cols}) + load(b, {i, j}, {rows, cols}));
  });
}
// [/kernel]

const Solution add_matrices_solution(1, "add_matrices", [](const Device& device) {
  const int rows = 77, cols = 130;
  const auto a = normal_values(rows * cols, 1), b = normal_values(rows * cols, 2);
  const auto c = device.tensor<f32>({rows, cols});
  launch(device.stream(), add_matrices(32, 64), device.tensor<f32>({rows, cols}, a),
         device.tensor<f32>({rows, cols}, b), c);

  std::vector<double> expected;
  for (int i = 0; i < rows * cols; ++i) expected.push_back(double{a[i]} + b[i]);
  return agree("01_add_matrices", c.to_vector(), expected, 6e-8);
});

}  // namespace solutions
