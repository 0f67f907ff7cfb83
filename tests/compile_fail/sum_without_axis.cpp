// expect: a reduction names its axis, as in sum(x, 1)
#include "api/tessera.hpp"

using namespace tessera;

auto subject = kernel("sum_without_axis", [](In<f32, 1> x) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  Tile total = sum(f);
#else
  Tile total = sum(f, 0);
#endif
});
