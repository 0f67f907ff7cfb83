// Lesson 8: parameters that are measured. y is the transpose of x. How fast a kernel is depends on its tiles, and the
// best tiles depend on the machine, so this kernel has no fixed ones: tunable() makes a family of kernels, one for each
// configuration of its parameters.
//
// tune() compiles the configurations, runs them in a process of its own, so that one that hangs or fails does no harm,
// compares their results with those of the first, and measures those that are left. The fastest is recorded in the
// cache folder: launch() takes it for arguments of this class from then on, also when the program is started again.
// Without a record, launch() takes the first configuration.
#include <cstdio>
#include <numeric>
#include <vector>

#include <tessera/tune.hpp>
#include "lesson.hpp"

using namespace tessera;

auto transposed(int rows, int columns) {
  return kernel("transposed", [=](In<f32, 2> x, Out<f32, 2> y) {
    require((y.extent(0) == x.extent(1)) & (y.extent(1) == x.extent(0)), "y has the extents of x, swapped");
    auto [m, n] = blocks(cdiv(x.extent(0), rows), cdiv(x.extent(1), columns));
    store(y, {n, m}, transpose(load(x, {m, n}, {rows, columns})));
  });
}

int main(int argc, char** argv) {
  const auto graph = [] { return to_string(transposed(32, 32).graph()); };
  return run_lesson(argc, argv, "08_tuning", graph, [] {
    const Device device = Device::best();
    const Tunable family = tunable(transposed, combinations({{32, 16, 64}, {32, 16, 64}}));

    constexpr std::int64_t rows = 1000, columns = 1400;
    std::vector<f32> values(rows * columns);
    std::iota(values.begin(), values.end(), 0.0f);
    const auto x = device.tensor<f32>({rows, columns}, values);
    const auto y = device.tensor<f32>({columns, rows});

    const TuneReport report = tune(device.stream(), family, x, y);
    std::printf("%s", report.text().c_str());

    launch(device.stream(), family, x, y);  // the fastest
    const std::vector<f32> results = y.to_vector();
    bool correct = true;
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns; ++column)
        correct &= results[static_cast<std::size_t>(column * rows + row)] ==
                   values[static_cast<std::size_t>(row * columns + column)];
    std::printf("08_tuning: %s\n", correct ? "y is the transpose of x" : "y is wrong");
    return correct;
  });
}
