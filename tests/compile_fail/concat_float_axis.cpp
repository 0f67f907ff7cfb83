// expect: for two values, maximum(a, b) is the larger
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("concat_float_axis", [](In<f32, 2> x) {
  Tile f = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  Tile both = concat(0.5f, f, f);
#else
  Tile both = concat(0, f, f);
#endif
});
