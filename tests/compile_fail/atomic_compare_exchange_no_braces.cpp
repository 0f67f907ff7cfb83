// expect: takes its position in braces
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("atomic_compare_exchange_no_braces", [](In<i32, 1> x, InOut<i32, 1> y) {
  Tile n = load(x, {0}, {8});
  Tile i = iota({8}, 0);
#ifndef GOOD
  atomic_compare_exchange(y, i, n, n);
#else
  atomic_compare_exchange(y, {i}, n, n);
#endif
});
