// expect: a floating literal meets an integer tile; write an integer, or cast<f32> the tile
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("float_literal_beside_i32", [](In<i32, 1> n, Out<i32, 1> y) {
  Tile i = load(n, {0}, {8});
#ifndef GOOD
  store(y, {0}, i + 0.5);
#else
  store(y, {0}, i + 1);
#endif
});
