// expect: tessera: sort_with_index takes f32, f64, i32, i64, u32 or u64; cast<f32>(x) first
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("sort_with_index_bf16", [](In<f32, 2> x) {
  Tile t = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  auto [value, index] = sort_with_index(cast<bf16>(t), 1);
#else
  auto [value, index] = sort_with_index(t, 1);
#endif
});
