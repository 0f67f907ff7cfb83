// expect: argmax takes f32, f64, i32, i64, u32 or u64; cast<f32>(x) first
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("argmax_bf16", [](In<bf16, 1> b) {
  Tile h = load(b, {0}, {8});
#ifndef GOOD
  Tile best = argmax(h, 0);
#else
  Tile best = argmax(cast<f32>(h), 0);
#endif
});
