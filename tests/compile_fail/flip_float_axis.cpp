// expect: tessera: an axis is a C++ integer
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("flip_float_axis", [](In<f32, 2> x) {
  Tile t = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  Tile s = flip(t, 1.0);
#else
  Tile s = flip(t, 1);
#endif
});
