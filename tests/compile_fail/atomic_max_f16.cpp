// expect: atomic_max takes tensors of f32, f64, i32, i64, u32 or u64
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("atomic_max_f16", [](In<f16, 1> x, InOut<f16, 1> y, InOut<f32, 1> z) {
  Tile h = load(x, {0}, {8});
#ifndef GOOD
  atomic_max(y, {0}, h);
#else
  atomic_max(z, {0}, cast<f32>(h));
#endif
});
