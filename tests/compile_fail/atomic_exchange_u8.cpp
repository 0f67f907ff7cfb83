// expect: atomic_exchange takes tensors of f32, f64, i32, i64, u32 or u64
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("atomic_exchange_u8", [](In<u8, 1> x, InOut<u8, 1> y, InOut<u32, 1> z) {
  Tile b = load(x, {0}, {8});
  Tile i = iota({8}, 0);
#ifndef GOOD
  atomic_exchange(y, {i}, b);
#else
  atomic_exchange(z, {i}, cast<u32>(b));
#endif
});
