// expect: logical ops take pred tiles, the results of comparisons
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("logical_and_f32", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  Tile both = f & f;
#else
  Tile both = (f > 0) & (f < 1);
#endif
});
