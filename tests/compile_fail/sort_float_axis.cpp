// expect: for two values, maximum(a, b) is the larger
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("sort_float_axis", [](In<f32, 2> x) {
  Tile f = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  Tile at = argsort(f, 1.0);
#else
  Tile at = argsort(f, 1) + argsort(f, 0);
#endif
});
