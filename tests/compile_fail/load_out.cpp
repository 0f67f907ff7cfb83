// expect: an Out is only written; declare the parameter InOut to read it too
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("load_out", [](In<f32, 1> x, Out<f32, 1> y) {
#ifndef GOOD
  Tile f = load(y, {0}, {8});
#else
  Tile f = load(x, {0}, {8});
#endif
});
