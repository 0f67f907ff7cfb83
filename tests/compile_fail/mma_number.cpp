// expect: mma accumulates in a tile: zeros<f32>({m, n}); mma(a, b) starts from zeros
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("mma_number", []() {
  Tile a = zeros<bf16>({8, 4}), b = zeros<bf16>({4, 8});
  Tile c = zeros<f32>({8, 8});
#ifndef GOOD
  Tile d = mma(a, b, 0);
#else
  Tile d = mma(a, b, zeros<f32>({8, 8}));
#endif
});
