// expect: mma adds to f32 tiles, products of f64 to f64, and of i8 and u8 to i32
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
