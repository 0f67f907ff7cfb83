// expect: a tile has at most 6 axes
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("reshape_rank", [](In<f32, 1> x) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  Tile deep = reshape(f, {1, 1, 1, 1, 1, 1, 8});
#else
  Tile deep = reshape(f, {1, 1, 1, 1, 1, 8});
#endif
});
