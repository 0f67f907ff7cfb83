// expect: tessera: min_with_index takes f32, f64, i32, i64, u32 or u64; cast<f32>(x) first
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("min_with_index_u8", [](In<f32, 2> x) {
  Tile h = cast<u8>(load(x, {0, 0}, {8, 8}));
#ifndef GOOD
  auto [value, index] = min_with_index(h, 1);
#else
  auto [value, index] = min_with_index(cast<i32>(h), 1);
#endif
});
