// expect: tessera: concat takes the axis first, then the tiles: concat(axis, a, b, ...)
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("concat_axis_last", [](In<f32, 1> x) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  Tile both = concat(f, f, 0);
#else
  Tile both = concat(0, f, f);
#endif
});
