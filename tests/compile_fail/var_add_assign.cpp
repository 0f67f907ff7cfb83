// expect: no match for
#include "api/tessera.hpp"

using namespace tessera;

auto subject = kernel("var_add_assign", [](In<f32, 1> x) {
  Tile f = load(x, {0}, {8});
  Var total = zeros<f32>({8});
#ifndef GOOD
  total += f;
#else
  total = total + f;
#endif
});
