// expect: an extent or a count is an Index: i32, rank 0
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("range_rank", [](In<i32, 1> n) {
  Tile i = load(n, {0}, {8});
#ifndef GOOD
  for (Index j : range(i)) Tile next = j + 1;
#else
  for (Index j : range(item(load(n, {0}, {1})))) Tile next = j + 1;
#endif
});
