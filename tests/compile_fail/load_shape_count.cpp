// expect: tessera: load takes an extent for each axis
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("load_shape_count", [](In<f32, 2> x) {
#ifndef GOOD
  Tile f = load(x, {0, 0}, {8});
#else
  Tile f = load(x, {0, 0}, {1, 8});
#endif
});
