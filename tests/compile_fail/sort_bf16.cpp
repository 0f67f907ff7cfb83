// expect: sort takes f32, f64, i32, i64, u32 or u64; cast<f32>(x) first
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("sort_bf16", [](In<bf16, 1> b) {
  Tile h = load(b, {0}, {8});
#ifndef GOOD
  Tile s = sort(h, 0);
#else
  Tile s = sort(cast<f32>(h), 0);
#endif
});
