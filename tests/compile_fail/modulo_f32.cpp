// expect: the remainder of reals is a - b * floor(a / b)
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("modulo_f32", [](In<i32, 1> n, Out<i32, 1> y) {
  Tile i = load(n, {0}, {8});
#ifndef GOOD
  store(y, {0}, cast<i32>(cast<f32>(i) % 3));
#else
  store(y, {0}, i % 3);
#endif
});
