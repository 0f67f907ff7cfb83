// expect: write the shape in braces: zeros<f32>
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("zeros_no_braces", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile t = load(x, {0}, {8});
#ifndef GOOD
  Var sum = zeros<f32>(8);
  store(y, {0}, t + sum);
#else
  Var sum = zeros<f32>({8});
  store(y, {0}, t + sum);
#endif
});
