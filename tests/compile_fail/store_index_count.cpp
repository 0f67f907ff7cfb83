// expect: tessera: store takes an index for each axis of the tensor
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("store_index_count", [](In<f32, 1> x, Out<f32, 2> y) {
  Tile f = reshape(load(x, {0}, {8}), {1, 8});
#ifndef GOOD
  store(y, {0}, f);
#else
  store(y, {0, 0}, f);
#endif
});
