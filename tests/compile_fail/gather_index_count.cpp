// expect: gather takes an index and an extent for every axis but the first
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("gather_index_count", [](In<f32, 2> x, In<i32, 1> n) {
  Tile i = load(n, {0}, {8});
#ifndef GOOD
  Tile f = gather(x, i, {0, 0}, {1, 16});
#else
  Tile f = gather(x, i, {0}, {16});
#endif
});
