// expect: tessera: a permutation is a tile of i32 or i64
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("inverse_permutation_f32", [](In<f32, 2> x, In<i32, 1> rows, Out<f32, 2> y) {
  Tile t = load(x, {0, 0}, {4, 8});
#ifndef GOOD
  Tile p = inverse_permutation(t, 1);
#else
  Tile p = inverse_permutation(argsort(t, 1), 1);
#endif
});
