// expect: tessera: a tensor takes an extent for each axis, and a stride for each if strides are given
#include <tessera/tessera.hpp>

using namespace tessera;

void use(const Device& device, const Tensor<i32, 1>& n, const Tensor<f32, 2>& x, const Tensor<f16, 2>& h) {
#ifndef GOOD
  Tensor<f32, 2> y(device, x.data(), {2, 3}, {3});
#else
  Tensor<f32, 2> y(device, x.data(), {2, 3}, {3, 1});
#endif
  (void)device, (void)n, (void)x, (void)h;
}
