// expect: the expected value and the tensor have different element types; cast<T>(tile)
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("atomic_compare_exchange_expected", [](In<i32, 1> x, InOut<i64, 1> y) {
  Tile n = load(x, {0}, {8});
#ifndef GOOD
  atomic_compare_exchange(y, {0}, n, cast<i64>(n));
#else
  atomic_compare_exchange(y, {0}, cast<i64>(n), cast<i64>(n));
#endif
});
