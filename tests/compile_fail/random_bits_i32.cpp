// expect: this op takes i64; cast<i64>(x) first
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("random_bits_i32", [](Out<i32, 1> y) {
  Tile index = iota({8}, 0);
#ifndef GOOD
  store(y, {0}, random_bits(1, index));
#else
  store(y, {0}, random_bits(1, cast<i64>(index)));
#endif
});
