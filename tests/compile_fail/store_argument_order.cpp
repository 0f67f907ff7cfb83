// expect: tessera: store takes the tensor first, then the position, then the tile
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("store_argument_order", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  store(f, y, {0});
#else
  store(y, {0}, f);
#endif
});
