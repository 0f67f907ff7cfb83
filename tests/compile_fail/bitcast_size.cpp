// expect: tessera: bitcast takes element types of tensors with the same number of bits
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("bitcast_size", [](In<f32, 1> x, Out<i64, 1> y) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  store(y, {0}, bitcast<i64>(f));
#else
  store(y, {0}, cast<i64>(bitcast<i32>(f)));
#endif
});
