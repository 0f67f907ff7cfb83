// expect: tessera: a condition is computed in the kernel, from extents, scalars or tiles; for a value known
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("check_bool", [](In<f32, 2> x, Out<f32, 2> y) {
  Tile t = load(x, {0, 0}, {4, 4});
#ifndef GOOD
  check(true, "fine");
#else
  check(t > 0, "positive");
  store(y, {0, 0}, t);
#endif
});
