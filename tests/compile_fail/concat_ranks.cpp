// expect: concat takes tiles of the same rank
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("concat_ranks", [](In<f32, 1> x) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  Tile both = concat(0, f, reshape(f, {1, 8}));
#else
  Tile both = concat(0, f, f);
#endif
});
