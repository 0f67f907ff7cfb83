// expect: top_k takes f32, f64, i32, i64, u32 or u64; cast<f32>(x) first
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("top_k_f16", [](In<f16, 2> b) {
  Tile h = load(b, {0, 0}, {8, 8});
#ifndef GOOD
  auto [s, i] = top_k(h, 2, 1);
#else
  auto [s, i] = top_k(cast<f32>(h), 2, 1);
#endif
});
