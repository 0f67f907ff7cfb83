// expect: tessera: where takes a pred as its condition, the result of a comparison; for a number write x != 0
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("where_condition", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  store(y, {0}, where(f, f, 0));
#else
  store(y, {0}, where(f != 0, f, 0));
#endif
});
