// expect: atomic_add takes tensors of f32, f64, i32, i64, u32 or u64
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("atomic_add_bf16", [](In<bf16, 1> b, InOut<bf16, 1> y, InOut<f32, 1> z) {
  Tile h = load(b, {0}, {8});
#ifndef GOOD
  atomic_add(y, {0}, h);
#else
  atomic_add(z, {0}, cast<f32>(h));
#endif
});
