// expect: transpose takes a tile of rank 2 or more
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("transpose_rank", [](In<f32, 1> x) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  Tile transposed = transpose(f);
#else
  Tile transposed = transpose(reshape(f, {2, 4}));
#endif
});
