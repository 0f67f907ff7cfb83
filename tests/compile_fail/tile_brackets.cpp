// expect: a tile has no [ ]
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("tile_brackets", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile t = load(x, {0}, {8});
#ifndef GOOD
  Tile first = t[0];
  store(y, {0}, first + zeros<f32>({8}));
#else
  Tile first = item(slice(t, 0, 0, 1));
  store(y, {0}, first + zeros<f32>({8}));
#endif
});
