// expect: argsort takes f32, f64, i32, i64, u32 or u64; cast<f32>(x) first
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("argsort_u8", [](In<u8, 1> b) {
  Tile h = load(b, {0}, {8});
#ifndef GOOD
  Tile s = argsort(h, 0);
#else
  Tile s = argsort(cast<i32>(h), 0);
#endif
});
