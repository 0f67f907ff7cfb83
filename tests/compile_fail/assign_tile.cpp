// expect: tessera: a Tile never changes
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("assign_tile", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile total = load(x, {0}, {8});
#ifndef GOOD
  total = total + 1;
#else
  Tile more = total + 1;
#endif
});
