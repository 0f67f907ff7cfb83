// expect: atomics work on an InOut
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("atomic_add_out", [](In<f32, 1> x, Out<f32, 1> y, InOut<f32, 1> z) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  atomic_add(y, {0}, f);
#else
  atomic_add(z, {0}, f);
#endif
});
