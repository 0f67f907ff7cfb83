// expect: the tile and the tensor have different element types; cast<T>(tile)
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("scatter_element_type", [](In<f32, 1> x, In<i32, 1> n, Out<i32, 1> y) {
  Tile f = load(x, {0}, {8});
  Tile i = load(n, {0}, {8});
#ifndef GOOD
  scatter(y, i, f);
#else
  scatter(y, i, cast<i32>(f));
#endif
});
