// expect: tessera: interleave takes tiles of the same rank and shape
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("interleave_ranks", [](In<f32, 2> x, Out<f32, 2> y) {
  Tile t = load(x, {0, 0}, {4, 4});
#ifndef GOOD
  Tile m = interleave(t, item(sum(t)), 1);
#else
  Tile m = interleave(t, t, 1);
#endif
});
