// expect: atomics work on an InOut
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("atomic_or_in", [](In<i32, 1> x, In<i32, 1> y, InOut<i32, 1> z) {
  Tile n = load(x, {0}, {8});
#ifndef GOOD
  atomic_or(y, {0}, n);
#else
  atomic_or(z, {0}, n);
#endif
});
