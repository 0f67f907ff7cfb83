// expect: row indices are a tile of i32 or i64, of rank 1
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("gather_rows_f32", [](In<f32, 2> x, In<f32, 1> at) {
  Tile rows = load(at, {0}, {8});
#ifndef GOOD
  Tile f = gather(x, rows, {0}, {16});
#else
  Tile f = gather(x, cast<i32>(rows), {0}, {16});
#endif
});
