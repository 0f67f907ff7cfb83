// expect: row indices are a tile of i32 or i64, of rank 1
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("scatter_rows_f32", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  scatter(y, f, f);
#else
  scatter(y, cast<i32>(f), f);
#endif
});
