// Histogram: how often each value occurs. A block compares its values with all bins and adds its counts to everybody's.
#include "gallery/gallery.hpp"

namespace gallery {

auto histogram(int bins, int size, int rounds) {
  return kernel("histogram", [=](In<i32, 1> values, InOut<i32, 1> counts) {
    require(counts.extent(0) == bins, "a count for each bin");
    Index block = blocks(cdiv(values.extent(0), size * rounds));
    Var mine = zeros<i32>({1, bins});
    for (Index round : range(rounds)) {
      Tile some = load(values, {block * rounds + round}, {size}, -1);  // what is not there is in no bin
      mine += sum(cast<i32>(expand_dims(some, 1) == iota({1, bins}, 1)), 0);
    }
    atomic_add(counts, {0}, reshape(mine, {bins}));
  });
}

const Example histogram_example("histogram", 0, [](const Device& device) {
  const int bins = 64, count = 5003;
  const auto values = random_integers(count, bins, 1);
  const auto counts = tensor_of(device, {bins}, std::vector<i32>(bins));
  launch(device.stream(), histogram(bins, 32, 32), tensor_of(device, {count}, values), counts);

  std::vector<double> expected(bins);
  for (const i32 value : values) ++expected[value];
  return largest_error(counts, expected);
});

}  // namespace gallery
