// expect: f16, bf16, tf32, u8 and pred are not for arithmetic; cast<f32>(x) first
#include "api/tessera.hpp"

using namespace tessera;

auto subject = kernel("sum_pred", [](In<f32, 1> x) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  Tile count = sum(f > 0, 0);
#else
  Tile count = sum(where(f > 0, 1, 0), 0);
#endif
});
