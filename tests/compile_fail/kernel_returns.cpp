// expect: a kernel returns nothing; store what it computes
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("kernel_returns", [](In<f32, 1> x) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  return f;
#endif
});
