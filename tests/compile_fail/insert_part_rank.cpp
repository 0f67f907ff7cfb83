// expect: tessera: insert takes an index for each axis of the tile, and a part of the same rank
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("insert_part_rank", [](In<f32, 2> x) {
  Tile t = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  Tile whole = insert(t, {1, 0}, zeros<f32>({4}));
#else
  Tile whole = insert(t, {1, 0}, zeros<f32>({4, 1}));
#endif
});
