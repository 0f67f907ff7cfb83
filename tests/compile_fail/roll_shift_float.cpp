// expect: tessera: roll's shift is a C++ integer
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("roll_shift_float", [](In<f32, 2> x) {
  Tile t = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  Tile s = roll(t, 1.5, 1);
#else
  Tile s = roll(t, 1, 1);
#endif
});
