// expect: row indices are a tile of i32 or i64, of rank 1
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("gather_rows_rank", [](In<f32, 2> x, In<i32, 2> at) {
  Tile rows = load(at, {0, 0}, {1, 8});
#ifndef GOOD
  Tile f = gather(x, rows, {0}, {16});
#else
  Tile f = gather(x, reshape(rows, {8}), {0}, {16});
#endif
});
