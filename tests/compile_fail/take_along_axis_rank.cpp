// expect: tessera: the tile and the indices have one rank, of 1 or more
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("take_along_axis_rank", [](In<f32, 2> x, In<i32, 1> rows, Out<f32, 2> y) {
  Tile t = load(x, {0, 0}, {4, 8});
#ifndef GOOD
  store(y, {0, 0}, take_along_axis(t, load(rows, {0}, {8}), 1));
#else
  store(y, {0, 0}, take_along_axis(t, expand_dims(load(rows, {0}, {8}), 0), 1));
#endif
});
