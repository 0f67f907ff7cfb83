// expect: tessera: permuted must name each axis of the tensor once
#include <tessera/tessera.hpp>

using namespace tessera;

void use(const Device& device, const Tensor<i32, 1>& n, const Tensor<f32, 2>& x, const Tensor<f16, 2>& h) {
#ifndef GOOD
  x.permuted({0});
#else
  x.permuted({1, 0});
#endif
  (void)device, (void)n, (void)x, (void)h;
}
