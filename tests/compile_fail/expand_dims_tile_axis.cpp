// expect: tessera: an axis is a C++ integer
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("expand_dims_tile_axis", [](In<f32, 2> x) {
  Tile t = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  Tile s = expand_dims(t, x.extent(0));
#else
  Tile s = expand_dims(t, 0);
#endif
});
