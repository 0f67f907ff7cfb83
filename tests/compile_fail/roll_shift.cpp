// expect: tessera: roll's shift is a C++ integer; for a shift that the kernel computes
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("roll_shift", [](In<f32, 2> x) {
  Tile t = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  Tile s = roll(t, x.extent(0), 1);
#else
  Tile s = roll(t, 3, 1);
#endif
});
