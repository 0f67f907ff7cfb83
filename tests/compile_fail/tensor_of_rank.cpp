// expect: tessera: the values of a tensor need as many levels of braces as it has axes
#include <tessera/tessera.hpp>

using namespace tessera;

void use(const Device& device, const Tensor<i32, 1>& n, const Tensor<f32, 2>& x, const Tensor<f16, 2>& h) {
#ifndef GOOD
  Tensor<f32, 2>::of(device, {1, 2, 3});
#else
  Tensor<f32, 2>::of(device, {{1, 2, 3}});
#endif
  (void)device, (void)n, (void)x, (void)h;
}
