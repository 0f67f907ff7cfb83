// expect: logical ops take pred tiles, the results of comparisons
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("logical_not_f32", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  Tile zero = !f;
#else
  Tile zero = f == 0;
#endif
});
