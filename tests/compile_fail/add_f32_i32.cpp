// expect: the operands have different element types; cast<T>(x) one of them
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("add_f32_i32", [](In<f32, 1> x, In<i32, 1> n, Out<f32, 1> y) {
  Tile f = load(x, {0}, {8});
  Tile i = load(n, {0}, {8});
#ifndef GOOD
  store(y, {0}, f + i);
#else
  store(y, {0}, f + cast<f32>(i));
#endif
});
