// expect: argmin takes f32, f64, i32, i64, u32 or u64
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("argmin_u8", [](In<u8, 1> x) {
#ifndef GOOD
  Tile at = argmin(load(x, {0}, {8}), 0);
#else
  Tile at = argmin(cast<i32>(load(x, {0}, {8})), 0);
#endif
});
