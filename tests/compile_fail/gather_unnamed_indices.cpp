// expect: named Tiles of i32, or of i64, of one rank
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("gather_unnamed_indices", [](In<f32, 1> x, InOut<f32, 1> z, Out<f32, 2> w) {
  Tile f = load(x, {0}, {8});
  Tile i = iota({8}, 0);
#ifndef GOOD
  Tile g = gather(x, {i * 2});
#else
  Tile g = gather(x, {i});
#endif
  store(z, {0}, f), store(w, {0, 0}, reshape(f, {1, 8}));
});
