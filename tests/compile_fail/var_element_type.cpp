// expect: the Var has a different element type; cast<T>(x) the value
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("var_element_type", [](In<i32, 1> n) {
  Tile i = load(n, {0}, {8});
  Var total = zeros<f32>({8});
#ifndef GOOD
  total = i;
#else
  total = cast<f32>(i);
#endif
});
