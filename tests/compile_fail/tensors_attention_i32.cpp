// expect: attention takes tensors of f32, f16 or bf16
#include <tessera/tensors.hpp>

using namespace tessera;

auto subject(Lazy<i32, 3> x) {
#ifndef GOOD
  return attention(x, x, x);
#else
  return attention(x.cast<f32>(), x.cast<f32>(), x.cast<f32>());
#endif
}
