// expect: tessera: this op takes integers; bitcast<i32>(x) has the bits of an f32
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("shift_f32", [](In<f32, 1> x, Out<i32, 1> y) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  Tile exponent = f >> 23;
#else
  Tile exponent = bitcast<i32>(f) >> 23;
#endif
});
