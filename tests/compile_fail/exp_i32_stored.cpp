// expect: this op takes f32 or f64; cast<f32>(x) first
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("exp_i32_stored", [](In<i32, 1> n, Out<f32, 1> y) {
  Tile i = load(n, {0}, {8});
#ifndef GOOD
  store(y, {0}, exp(i) + 1);
#else
  store(y, {0}, exp(cast<f32>(i)) + 1);
#endif
});
