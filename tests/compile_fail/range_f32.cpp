// expect: an extent or a count is an Index: i32, rank 0
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("range_f32", [](Scalar<f32> s) {
#ifndef GOOD
  for (Index i : range(s)) Tile next = i + 1;
#else
  for (Index i : range(cast<i32>(s))) Tile next = i + 1;
#endif
});
