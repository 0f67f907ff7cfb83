// expect: must be named before it is used: Tile x = load(...);
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("atomic_old_unnamed", [](In<i32, 1> x, InOut<i32, 1> y, Out<i32, 1> z) {
  Tile n = load(x, {0}, {8});
#ifndef GOOD
  store(z, {0}, atomic_add(y, {0}, n) + 1);
#else
  Tile old = atomic_add(y, {0}, n);
  store(z, {0}, old + 1);
#endif
});
