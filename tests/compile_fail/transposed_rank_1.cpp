// expect: tessera: transposed takes a tensor of rank 2 or more
#include <tessera/tessera.hpp>

using namespace tessera;

void use(const Device& device, const Tensor<i32, 1>& n, const Tensor<f32, 2>& x, const Tensor<f16, 2>& h) {
#ifndef GOOD
  n.transposed();
#else
  x.transposed();
#endif
  (void)device, (void)n, (void)x, (void)h;
}
