// expect: for two values, maximum(a, b) is the larger
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("cumsum_character_axis", [](In<f32, 2> x) {
  Tile f = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  Tile sums = cumsum(f, '\1');
#else
  Tile sums = cumsum(f, 1) + cumsum(f, 0);
#endif
});
