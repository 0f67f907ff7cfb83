// expect: permute must name each axis of the tile once
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("permute_axes", [](In<f32, 1> x) {
  Tile f = reshape(load(x, {0}, {8}), {2, 4});
#ifndef GOOD
  Tile transposed = permute(f, {1, 0, 2});
#else
  Tile transposed = permute(f, {1, 0});
#endif
});
