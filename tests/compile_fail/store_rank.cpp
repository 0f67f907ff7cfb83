// expect: the tile and the tensor have different ranks; reshape the tile
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("store_rank", [](In<f32, 1> x, Out<f32, 2> y) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  store(y, {0, 0}, f);
#else
  store(y, {0, 0}, reshape(f, {1, 8}));
#endif
});
