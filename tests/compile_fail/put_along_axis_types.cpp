// expect: tessera: the tile and the values have different element types; cast<T>(values)
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("put_along_axis_types", [](In<f32, 2> x, In<i32, 1> rows, Out<f32, 2> y) {
  Tile t = load(x, {0, 0}, {4, 8});
#ifndef GOOD
  store(y, {0, 0}, put_along_axis(t, argsort(t, 1), argsort(t, 1), 1));
#else
  store(y, {0, 0}, put_along_axis(t, argsort(t, 1), t, 1));
#endif
});
