// expect: mma accumulates in f32 tiles, in f64 for f64 operands, in i32 for i8 and u8 operands
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("mma_accumulator_i8", []() {
  Tile a = zeros<i8>({8, 4}), b = zeros<i8>({4, 8});
#ifndef GOOD
  Tile d = mma(a, b, zeros<f32>({8, 8}));
#else
  Tile d = mma(a, b, zeros<i32>({8, 8}));
#endif
});
