// expect: f16, bf16, tf32, u8 and pred are not for arithmetic; cast<f32>(x) first
#include "api/tessera.hpp"

using namespace tessera;

auto subject = kernel("negate_pred", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  Tile other = -(f > 0);
#else
  Tile other = !(f > 0);
#endif
});
