// expect: mma accumulates in f32 tiles
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("mma_accumulator", []() {
  Tile a = zeros<bf16>({8, 4}), b = zeros<bf16>({4, 8});
  Tile c = zeros<f32>({8, 8});
#ifndef GOOD
  Tile d = mma(a, b, cast<bf16>(c));
#else
  Tile d = mma(a, b, c);
#endif
});
