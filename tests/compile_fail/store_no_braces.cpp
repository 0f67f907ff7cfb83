// expect: store takes the position in braces
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("store_no_braces", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile t = load(x, {0}, {8});
#ifndef GOOD
  store(y, 0, t);
#else
  store(y, {0}, t);
#endif
});
