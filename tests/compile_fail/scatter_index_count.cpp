// expect: tessera: scatter takes an index for every axis but the first
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("scatter_index_count", [](In<f32, 2> x, Out<f32, 2> y) {
  Tile t = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  scatter(y, iota({8}, 0), {0, 0}, t);
#else
  scatter(y, iota({8}, 0), {0}, t);
#endif
});
