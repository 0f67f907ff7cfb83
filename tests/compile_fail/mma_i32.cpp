// expect: tessera: the operand types of mma are f32 f64 f16 bf16 tf32 f8e4m3 f8e5m2 i8 u8
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("mma_i32", []() {
  Tile a = zeros<bf16>({8, 4}), b = zeros<bf16>({4, 8});
  Tile c = zeros<f32>({8, 8});
#ifndef GOOD
  Tile d = mma(cast<i32>(a), cast<i32>(b), c);
#else
  Tile d = mma(cast<f32>(a), cast<f32>(b), c);
#endif
});
