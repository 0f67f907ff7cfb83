// expect: && cannot be traced; use & on pred tiles
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("and_and", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  Tile both = (f > 0) && (f < 1);
#else
  Tile both = (f > 0) & (f < 1);
#endif
});
