// expect: atomic_and takes tensors of i32, i64, u32 or u64
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("atomic_and_f32", [](In<f32, 1> x, InOut<f32, 1> y, InOut<u32, 1> z) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  atomic_and(y, {0}, f);
#else
  atomic_and(z, {0}, bitcast<u32>(f));
#endif
});
