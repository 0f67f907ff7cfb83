// expect: tessera: a tile has at most 6 axes
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("expand_dims_rank", [](In<f32, 2> x) {
  Tile t = zeros<f32>({1, 1, 1, 1, 1, 8});
#ifndef GOOD
  Tile s = expand_dims(t, 0);
#else
  Tile s = expand_dims(squeeze(t, 0), 0);
#endif
});
