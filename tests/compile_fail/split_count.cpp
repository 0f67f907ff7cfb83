// expect: tessera: split takes the number of parts, as in split<2>(x, 1)
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("split_count", [](In<f32, 2> x) {
  Tile t = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  auto parts = split<0>(t, 1);
#else
  auto parts = split<2>(t, 1);
#endif
});
