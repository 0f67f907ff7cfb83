// expect: write tile(a) for a tensor in an expression
#include <tessera/tensors.hpp>

using namespace tessera;

auto subject(const Tensor<f32, 2>& x, const Tensor<f32, 2>& y) {
#ifndef GOOD
  return x + y;
#else
  return tile(x) + y;
#endif
}
