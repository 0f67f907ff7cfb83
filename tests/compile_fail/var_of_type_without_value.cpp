// expect: a Var must be initialized
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("var_of_type_without_value", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile t = load(x, {0}, {8});
#ifndef GOOD
  Var<f32, 1> sum;
  sum = t;
  store(y, {0}, sum);
#else
  Var<f32, 1> sum = zeros<f32>({8});
  sum = t;
  store(y, {0}, sum);
#endif
});
