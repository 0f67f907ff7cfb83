// expect: the operands a and b of mma must have the same element type; cast one
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("mma_mixed_types", []() {
  Tile a = zeros<bf16>({8, 4}), b = zeros<bf16>({4, 8});
  Tile c = zeros<f32>({8, 8});
#ifndef GOOD
  Tile d = mma(a, cast<f32>(b), c);
#else
  Tile d = mma(a, b, c);
#endif
});
