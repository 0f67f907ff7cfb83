// expect: tessera: the values have a higher rank than the tile; reshape them
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("put_along_axis_rank", [](In<f32, 2> x, Out<f32, 2> y) {
  Tile t = load(x, {0, 0}, {4, 8});
#ifndef GOOD
  store(y, {0, 0}, put_along_axis(t, argsort(t, 1), expand_dims(t, 0), 1));
#else
  store(y, {0, 0}, put_along_axis(t, argsort(t, 1), t, 1));
#endif
});
