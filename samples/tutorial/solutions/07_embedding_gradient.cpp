// Exercise 7: the gradient of an embedding table. Row i of dy is added to row tokens[i] of the table's gradient.
#include "tutorial/solutions/solutions.hpp"

namespace solutions {

// [kernel]
auto embedding_gradient(int rows, int cols) {
  return kernel("embedding_gradient", [=](In<i32, 1> tokens, In<f32, 2> dy, InOut<f32, 2> dtable) {
    require(tokens.extent(0) == dy.extent(0), "a token for each row");
    require(dtable.extent(1) == dy.extent(1), "as many columns of both");
    auto [i, j] = blocks(cdiv(dy.extent(0), rows), cdiv(dy.extent(1), cols));
    Tile row = expand_dims(load(tokens, {i}, {rows}, -1), 1);  // [rows,1]; past the end -1, which is no row
    Tile col = j * cols + iota({1, cols}, 1);                  // [1,cols]
    atomic_add(dtable, {row, col}, load(dy, {i, j}, {rows, cols}));
  });
}
// [/kernel]

const Solution embedding_gradient_solution(7, "embedding_gradient", [](const Device& device) {
  const int count = 100, width = 70, vocabulary = 30;
  std::vector<i32> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(i * i % vocabulary);
  const auto dy = normal_values(count * width, 1);
  const auto dtable = device.tensor<f32>({vocabulary, width});
  dtable.fill(0);
  launch(device.stream(), embedding_gradient(16, 64), device.tensor<i32>({count}, tokens),
         device.tensor<f32>({count, width}, dy), dtable);

  std::vector<double> expected(vocabulary * width);
  for (int i = 0; i < count; ++i)
    for (int col = 0; col < width; ++col) expected[tokens[i] * width + col] += dy[i * width + col];
  return agree("07_embedding_gradient", dtable.to_vector(), expected, 1e-5);
});

}  // namespace solutions
