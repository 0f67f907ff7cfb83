// expect: tessera: a pred is not a number: cast<i32>(p) is 0 or 1, and & | ^ ! are its operators
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("negate_pred", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  Tile other = -(f > 0);
#else
  Tile other = !(f > 0);
#endif
});
