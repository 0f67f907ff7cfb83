// expect: an In is only read; declare the parameter Out or InOut to write it
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("scatter_in", [](In<f32, 1> x, In<i32, 1> n, Out<f32, 1> y) {
  Tile f = load(x, {0}, {8});
  Tile i = load(n, {0}, {8});
#ifndef GOOD
  scatter(x, i, f);
#else
  scatter(y, i, f);
#endif
});
