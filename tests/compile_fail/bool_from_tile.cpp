// expect: cannot convert
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("bool_from_tile", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  bool positive = f > 0;
#else
  Tile positive = f > 0;
#endif
});
