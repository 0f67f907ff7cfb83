// Histogram: how often each byte value occurs. Each CTA counts into a tile of its own, then adds its counts to the
// global counts with atomics.
#include "gallery/gallery.hpp"

namespace gallery {

auto histogram(int bins, int size) {
  return kernel("histogram", [=](In<u8, 1> values, InOut<i32, 1> counts) {
    require(counts.extent(0) == bins, "a count for each bin");
    Index block = blocks(cdiv(values.extent(0), size));
    Tile left = values.extent(0) - block * size;
    Tile some = cast<i32>(load(values, {block}, {size}));
    atomic_add(counts, {0},
               histogram(where(iota({size}, 0) < left, some, -1), bins));  // elements past the end go into no bin
  });
}

const Example histogram_example("histogram", 0, [](const Device& device) {
  const int bins = 200, count = 50003;
  std::vector<u8> values;
  for (const i32 value : random_integers(count, 256, 1)) values.push_back(static_cast<u8>(value));
  const auto counts = tensor_of(device, {bins}, std::vector<i32>(bins));
  launch(device.stream(), histogram(bins, 16384), tensor_of(device, {count}, values), counts);

  std::vector<double> expected(bins);
  for (const u8 value : values)
    if (value < bins) ++expected[value];
  return largest_error(counts, expected);
});

}  // namespace gallery
