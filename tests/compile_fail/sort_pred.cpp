// expect: sort takes f32, f64, i32, i64, u32 or u64
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("sort_pred", [](In<f32, 1> b) {
  Tile h = load(b, {0}, {8});
#ifndef GOOD
  Tile s = sort(h > 0, 0);
#else
  Tile s = sort(cast<i32>(h > 0), 0);
#endif
});
