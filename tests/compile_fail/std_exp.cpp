// expect: for tiles, leave out std::
#include <cmath>

#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("std_exp", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile t = load(x, {0}, {8});
#ifndef GOOD
  store(y, {0}, std::exp(t));
#else
  store(y, {0}, exp(t));
#endif
});
