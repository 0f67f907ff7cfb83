// expect: tessera: indices are a tile of i32 or i64
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("take_along_axis_f32", [](In<f32, 2> x, In<i32, 1> rows, Out<f32, 2> y) {
  Tile t = load(x, {0, 0}, {4, 8});
#ifndef GOOD
  store(y, {0, 0}, take_along_axis(t, t, 1));
#else
  store(y, {0, 0}, take_along_axis(t, cast<i32>(t), 1));
#endif
});
