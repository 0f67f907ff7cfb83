// expect: tessera: max_with_index takes f32, f64, i32, i64, u32 or u64; cast<f32>(x) first
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("max_with_index_f16", [](In<f32, 2> x) {
  Tile t = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  auto [value, index] = max_with_index(cast<f16>(t), 1);
#else
  auto [value, index] = max_with_index(t, 1);
#endif
});
