// expect: mma takes three tiles of rank 2, or of rank 3 for a batch; reshape them
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("mma_rank", []() {
  Tile a = zeros<bf16>({8, 4}), b = zeros<bf16>({4, 8});
  Tile c = zeros<f32>({8, 8});
#ifndef GOOD
  Tile d = mma(reshape(a, {1, 8, 4}), b, c);
#else
  Tile d = mma(a, b, c);
#endif
});
