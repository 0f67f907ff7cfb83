// expect: tessera: a start, an extent, a step or a count is a C++ integer here
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("histogram_float", [](In<i32, 2> x) {
  Tile t = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  Tile s = histogram(t, 2.5);
#else
  Tile s = histogram(t, 2);
#endif
});
