// expect: tessera: a tensor is copied from one of the same rank; reshape the other
#include <tessera/tessera.hpp>

using namespace tessera;

void use(const Device& device, const Tensor<i32, 1>& n, const Tensor<f32, 2>& x, const Tensor<f16, 2>& h) {
#ifndef GOOD
  n.copy_from(Tensor<i32, 2>(device, {2, 2}));
#else
  n.copy_from(Tensor<i32, 1>(device, {4}));
#endif
  (void)device, (void)n, (void)x, (void)h;
}
