// expect: for two values, maximum(a, b) is the larger
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("sum_bool_axis", [](In<f32, 2> x) {
  Tile f = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  Tile total = sum(f, true);
#else
  Tile total = sum(f, 1) + sum(f, 0);
#endif
});
