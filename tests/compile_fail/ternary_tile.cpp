// expect: a tile has no truth value in C++; use where(condition, a, b) or if_(condition, ...)
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("ternary_tile", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  store(y, {0}, f > 0 ? f : f + 1);
#else
  store(y, {0}, where(f > 0, f, f + 1));
#endif
});
