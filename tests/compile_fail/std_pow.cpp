// expect: for tiles, leave out std::
#include <cmath>

#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("std_pow", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile t = load(x, {0}, {8});
#ifndef GOOD
  store(y, {0}, std::pow(2.0f, t + 1));
#else
  store(y, {0}, pow(2.0f, t + 1));
#endif
});
