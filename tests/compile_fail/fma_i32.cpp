// expect: this op takes f32 or f64; cast<f32>(x) first
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("fma_i32", [](In<i32, 1> x) {
  Tile i = load(x, {0}, {8});
#ifndef GOOD
  Tile y = fma(i, 2, i);
#else
  Tile y = fma(cast<f32>(i), 2, cast<f32>(i));
#endif
});
