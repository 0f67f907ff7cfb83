// expect: an In is only read; declare the parameter Out or InOut to write it
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("store_in", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  store(x, {0}, f);
#else
  store(y, {0}, f);
#endif
});
