// expect: tessera: logical ops take pred tiles, the results of comparisons; bitwise ops take integers
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("bitwise_xor_f32", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  Tile both = f ^ f;
#else
  Tile both = bitcast<i32>(f) ^ bitcast<i32>(f);
#endif
});
