// Exercise 9: the sums of columns without the race of lesson 9. A CTA owns some columns and adds up all their rows, so
// no two CTAs store to one place, and the order of each sum is fixed.
#include <cstdio>
#include <optional>
#include <string>

#include "tutorial/solutions/solutions.hpp"

namespace solutions {

// [kernel]
auto column_sums(int rows, int cols) {
  return kernel("column_sums", [=](In<f32, 2> x, Out<f32, 2> y) {
    require((y.extent(0) == 1) & (y.extent(1) == x.extent(1)), "a sum for each column");
    Index j = blocks(cdiv(x.extent(1), cols));
    Var total = zeros<f32>({1, cols});
    for (Index i : range(cdiv(x.extent(0), rows))) total += sum(load(x, {i, j}, {rows, cols}), 0);
    store(y, {0, j}, total);
  });
}
// [/kernel]

const Solution column_sums_solution(9, "column_sums", [](const Device& device) {
  const int rows = 100, cols = 40;
  const auto x = normal_values(rows * cols, 1);
  std::vector<double> expected(cols);
  for (int i = 0; i < rows * cols; ++i) expected[i % cols] += x[i];

  const auto right_on = [&](const Device& where) {
    const auto y = where.tensor<f32>({1, cols});
    launch(where.stream(), column_sums(8, 16), where.tensor<f32>({rows, cols}, x), y);  // the emulator throws at a race
    return agree("09_column_sums", y.to_vector(), expected, 1e-5);
  };
  std::optional<Device> emulated;
  try {
    emulated = Device::parse("emulated");
  } catch (const Error& error) {
    std::printf("09_column_sums: not emulated: %s\n", error.what());
  }
  return right_on(device) && (!emulated || right_on(*emulated));
});

}  // namespace solutions
