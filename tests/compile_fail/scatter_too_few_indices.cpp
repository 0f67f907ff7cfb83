// expect: takes a tile of indices for each axis
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("scatter_too_few_indices", [](In<f32, 1> x, InOut<f32, 1> z, Out<f32, 2> w) {
  Tile f = load(x, {0}, {8});
  Tile i = iota({8}, 0);
#ifndef GOOD
  scatter(w, {i}, f);
#else
  scatter(w, {i, i}, f);
#endif
  store(z, {0}, f), store(w, {0, 0}, reshape(f, {1, 8}));
});
