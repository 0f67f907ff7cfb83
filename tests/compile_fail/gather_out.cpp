// expect: an Out is only written; declare the parameter InOut to read it too
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("gather_out", [](Out<f32, 2> y, In<f32, 2> x, In<i32, 1> n) {
  Tile i = load(n, {0}, {8});
#ifndef GOOD
  Tile f = gather(y, i, {0}, {16});
#else
  Tile f = gather(x, i, {0}, {16});
#endif
});
