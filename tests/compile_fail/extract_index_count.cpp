// expect: extract takes an index and an extent for each axis of the tile
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("extract_index_count", [](In<f32, 2> x, Out<f32, 2> y) {
  Tile t = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  store(y, {0, 0}, reshape(extract(t, {1}, {4}), {4, 1}));
#else
  store(y, {0, 0}, extract(t, {1, 0}, {4, 1}));
#endif
});
