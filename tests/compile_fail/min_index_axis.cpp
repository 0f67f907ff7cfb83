// expect: for two values, maximum(a, b) is the larger
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("min_index_axis", [](In<i32, 2> x) {
  Tile f = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  Tile smaller = min(f, x.extent(0));
#else
  Tile smaller = minimum(f, x.extent(0));
#endif
});
