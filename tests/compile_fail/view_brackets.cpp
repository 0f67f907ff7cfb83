// expect: a tensor in a kernel has no [ ]
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("view_brackets", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile t = load(x, {0}, {8});
#ifndef GOOD
  y[0] = t;
#else
  store(y, {0}, t);
#endif
});
