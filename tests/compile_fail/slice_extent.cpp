// expect: tessera: a start, an extent, a step or a count is a C++ integer here
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("slice_extent", [](In<f32, 2> x) {
  Tile t = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  Tile s = slice(t, 0, 1, x.extent(0));
#else
  Tile s = slice(t, 0, x.extent(0), 1);
#endif
});
