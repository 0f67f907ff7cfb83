// expect: tessera: write several axes in braces, as in sum(x, {0, 1})
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("sum_axes", [](In<f32, 2> x, Out<f32, 2> y) {
  Tile t = load(x, {0, 0}, {4, 4});
#ifndef GOOD
  Tile m = sum(t, 0, 1);
#else
  Tile m = sum(t, {0, 1});
#endif
});
