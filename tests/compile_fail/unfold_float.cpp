// expect: tessera: a start, an extent, a step or a count is a C++ integer here
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("unfold_float", [](In<f32, 2> x) {
  Tile t = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  Tile s = load(x.unfold(0, 2.5, 1), {0, 0, 0}, {1, 2, 8});
#else
  Tile s = load(x.unfold(0, 2, 1), {0, 0, 0}, {1, 2, 8});
#endif
});
