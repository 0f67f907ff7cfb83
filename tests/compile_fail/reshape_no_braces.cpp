// expect: write the shape in braces: reshape
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("reshape_no_braces", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile t = load(x, {0}, {8});
#ifndef GOOD
  store(y, {0}, sum(reshape(t, 8, 1), 1));
#else
  store(y, {0}, squeeze(reshape(t, {8, 1}), 1));
#endif
});
