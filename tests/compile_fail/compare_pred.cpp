// expect: f16, bf16, tf32, u8 and pred are not for arithmetic; cast<f32>(x) first
#include "api/tessera.hpp"

using namespace tessera;

auto subject = kernel("compare_pred", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  Tile same = (f > 0) == (f > 1);
#else
  Tile same = (f > 0) & (f > 1);
#endif
});
