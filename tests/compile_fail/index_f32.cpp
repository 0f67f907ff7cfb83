// expect: an index is an Index: i32, rank 0
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("index_f32", [](In<f32, 1> x, Scalar<f32> at) {
#ifndef GOOD
  Tile f = load(x, {at}, {8});
#else
  Tile f = load(x, {cast<i32>(at)}, {8});
#endif
});
