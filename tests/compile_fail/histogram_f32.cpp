// expect: tessera: histogram takes i32; cast<i32>(x) first
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("histogram_f32", [](In<f32, 1> x) {
  Tile t = load(x, {0}, {16});
#ifndef GOOD
  Tile m = histogram(t, 8);
#else
  Tile m = histogram(cast<i32>(t), 8);
#endif
});
