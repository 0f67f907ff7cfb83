// expect: tessera: bitcast takes element types of tensors with the same number of bits
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("bitcast_pred", [](In<f32, 1> x, Out<u8, 1> y) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  store(y, {0}, bitcast<u8>(f > 0));
#else
  store(y, {0}, cast<u8>(f > 0));
#endif
});
