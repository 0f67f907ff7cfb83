// expect: this op takes f32 or f64; cast<f32>(x) first
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("max_nan_i32", [](In<i32, 1> n) {
  Tile i = load(n, {0}, {8});
#ifndef GOOD
  Tile largest = max_nan(i, axis(0));
#else
  Tile largest = max(i, axis(0));
#endif
});
