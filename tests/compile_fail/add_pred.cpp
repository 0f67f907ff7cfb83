// expect: tessera: a pred is not a number: cast<i32>(p) is 0 or 1, and & | ^ ! are its operators
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("add_pred", [](In<f32, 2> x, Out<f32, 2> y) {
  Tile t = load(x, {0, 0}, {4, 4});
#ifndef GOOD
  Tile m = where(t > 0, t > 1, t > 2) + 1;
#else
  Tile m = cast<i32>(where(t > 0, t > 1, t > 2)) + 1;
#endif
});
