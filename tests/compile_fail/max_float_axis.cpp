// expect: for two values, maximum(a, b) is the larger
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("max_float_axis", [](In<f32, 2> x) {
  Tile f = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  Tile larger = max(f, 0.0f);
#else
  Tile larger = maximum(f, 0.0f);
#endif
});
