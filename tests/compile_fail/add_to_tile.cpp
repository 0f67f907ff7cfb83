// expect: tessera: a Tile never changes
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("add_to_tile", [](In<f32, 1> x, Out<f32, 1> y) {
#ifndef GOOD
  Tile total = load(x, {0}, {8});
#else
  Var total = load(x, {0}, {8});
#endif
  total += 1;
});
