// expect: tessera: the operands a and b of mma must have the same rank, 2, or 3 for a batch; reshape one
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("mma_factor_ranks", [](In<f32, 2> x) {
  Tile t = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  Tile d = mma(reshape(t, {1, 8, 8}), t);
#else
  Tile d = mma(t, t);
#endif
});
