// expect: tessera: a tensor is filled with a number
#include <tessera/tessera.hpp>

using namespace tessera;

void use(const Device& device, const Tensor<i32, 1>& n, const Tensor<f32, 2>& x, const Tensor<f16, 2>& h) {
#ifndef GOOD
  x.fill(true);
#else
  x.fill(1);
#endif
  (void)device, (void)n, (void)x, (void)h;
}
