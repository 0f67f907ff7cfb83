// expect: tessera: a start, an extent, a step or a count is a C++ integer here
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("slice_float", [](In<f32, 2> x) {
  Tile t = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  Tile s = slice(t, 0, 1.5, 2);
#else
  Tile s = slice(t, 0, 1, 2);
#endif
});
