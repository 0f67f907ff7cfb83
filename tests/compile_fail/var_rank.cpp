// expect: the Var has a different rank; reshape the value
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("var_rank", [](In<f32, 1> x) {
  Tile f = load(x, {0}, {8});
  Var total = zeros<f32>({1, 8});
#ifndef GOOD
  total = f;
#else
  total = reshape(f, {1, 8});
#endif
});
