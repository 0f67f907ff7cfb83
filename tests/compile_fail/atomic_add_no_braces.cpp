// expect: takes its position in braces
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("atomic_add_no_braces", [](In<f32, 1> x, InOut<f32, 1> z, Out<f32, 2> w) {
  Tile f = load(x, {0}, {8});
  Tile i = iota({8}, 0);
#ifndef GOOD
  atomic_add(z, i, f);
#else
  atomic_add(z, {i}, f);
#endif
  store(z, {0}, f), store(w, {0, 0}, reshape(f, {1, 8}));
});
