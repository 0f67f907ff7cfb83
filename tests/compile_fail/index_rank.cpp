// expect: an index is an Index: i32, rank 0
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("index_rank", [](In<f32, 1> x, In<i32, 1> n) {
#ifndef GOOD
  Tile f = load(x, {load(n, {0}, {1})}, {8});
#else
  Tile f = load(x, {item(load(n, {0}, {1}))}, {8});
#endif
});
