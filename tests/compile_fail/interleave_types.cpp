// expect: tessera: interleave takes tiles of the same element type; cast<T>(x) one of them
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("interleave_types", [](In<f32, 2> x, Out<f32, 2> y) {
  Tile t = load(x, {0, 0}, {4, 4});
#ifndef GOOD
  Tile m = interleave(t, cast<i32>(t), 1);
#else
  Tile m = interleave(t, t, 1);
#endif
});
