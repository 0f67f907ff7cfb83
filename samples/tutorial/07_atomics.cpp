// Lesson 7 of docs/tutorial: atomics. How often each number occurs, counted in two ways, and the sum of a vector in one
// launch.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include <tessera/tessera.hpp>
#include "lesson.hpp"

using namespace tessera;

// [each]
auto count_each(int size) {
  return kernel("count_each", [=](In<i32, 1> values, InOut<i32, 1> counts) {
    Index block = blocks(cdiv(values.extent(0), size));
    Tile bin = load(values, {block}, {size}, -1);  // past the end -1, which is no bin
    atomic_add(counts, {bin}, full<i32>({size}, 1));
  });
}
// [/each]

// [blocks]
auto count_in_blocks(int bins, int size) {
  return kernel("count_in_blocks", [=](In<i32, 1> values, InOut<i32, 1> counts) {
    require(counts.extent(0) == bins, "a count for each bin");
    Index block = blocks(cdiv(values.extent(0), size));
    atomic_add(counts, {0}, histogram(load(values, {block}, {size}, -1), bins));
  });
}
// [/blocks]

// [sum]
auto sum_in_one_launch(int size, int most) {
  return kernel("sum_in_one_launch", [=](In<f32, 1> x, InOut<f32, 1> partials, InOut<i32, 1> done, Out<f32, 1> total) {
    require(partials.extent(0) == cdiv(x.extent(0), size), "a partial sum for each block");
    require(partials.extent(0) <= most, "no more blocks than the last one can add up");
    require((done.extent(0) == 1) & (total.extent(0) == 1), "one counter, which is 0 at first, and one total");
    Index block = blocks(partials.extent(0));
    store(partials, {block}, sum(load(x, {block}, {size}), 0));
    Tile before = atomic_add(done, {0}, full<i32>({1}, 1), MemoryOrder::acq_rel);
    if_(item(before) == partials.extent(0) - 1, [&] {  // all other blocks have stored theirs
      Tile all = load(partials, {0}, {most});
      store(total, {0}, sum(all, 0));
      atomic_exchange(done, {0}, zeros<i32>({1}));  // ready for the next launch
    });
  });
}
// [/sum]

bool counts_right(const Device& device, const char* name, const auto& kernel, const std::vector<i32>& values,
                  const std::vector<i32>& expected) {
  const auto counts = device.tensor<i32>({std::ssize(expected)});
  counts.fill(0);  // an InOut is read, so it needs contents
  launch(device.stream(), kernel, device.tensor<i32>({std::ssize(values)}, values), counts);
  const bool right = counts.to_vector() == expected;
  std::printf("07_atomics: %s: counts %s\n", name, right ? "right" : "wrong");
  return right;
}

bool sum_right(const Device& device, int count) {
  const int size = 1024, most = 64;
  std::mt19937 generator(2);
  std::uniform_real_distribution<f32> uniform(0, 1);
  std::vector<f32> x(count);
  double expected = 0;
  for (f32& value : x) expected += value = uniform(generator);

  const auto partials = device.tensor<f32>({(count + size - 1) / size}), total = device.tensor<f32>({1});
  const auto done = device.tensor<i32>({1});
  done.fill(0);
  const auto kernel = sum_in_one_launch(size, most);
  std::vector<f32> sums;
  for (int launches = 0; launches < 2; ++launches) {
    launch(device.stream(), kernel, device.tensor<f32>({count}, x), partials, done, total);
    sums.push_back(total.to_vector()[0]);
  }
  const double error = std::abs(sums[0] / expected - 1), allowed = 1e-6;
  std::printf("07_atomics: sum of %d: error %.1e (allowed %.0e), %s bits in two launches\n", count, error, allowed,
              sums[0] == sums[1] ? "equal" : "different");
  return error <= allowed && sums[0] == sums[1];
}

int main(int argc, char** argv) {
  const auto graph = [] { return to_string(sum_in_one_launch(1024, 64).graph()); };
  return run_lesson(argc, argv, "07_atomics", graph, [] {
    const Device device = Device::best();
    const int bins = 100;
    std::mt19937 generator(1);
    std::uniform_int_distribution<i32> uniform(0, bins + 9);  // some values are no bin
    std::vector<i32> values(20003), expected(bins);
    for (i32& value : values) value = uniform(generator);
    for (const i32 value : values)
      if (value < bins) ++expected[value];

    bool ok = counts_right(device, "an atomic for each value", count_each(1024), values, expected);
    ok &= counts_right(device, "an atomic for each bin of a block", count_in_blocks(bins, 4096), values, expected);
    ok &= sum_right(device, 50001);
    return ok;
  });
}
