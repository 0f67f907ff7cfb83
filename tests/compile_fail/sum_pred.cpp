// expect: tessera: a pred is not a number: cast<i32>(p) is 0 or 1, and & | ^ ! are its operators
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("sum_pred", [](In<f32, 1> x) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  Tile count = sum(f > 0, 0);
#else
  Tile count = sum(where(f > 0, 1, 0), 0);
#endif
});
