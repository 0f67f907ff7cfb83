// expect: tessera: a tensor of integers is filled with an integer; convert the number first
#include <tessera/tessera.hpp>

using namespace tessera;

void use(const Device& device, const Tensor<i32, 1>& n, const Tensor<f32, 2>& x, const Tensor<f16, 2>& h) {
#ifndef GOOD
  n.fill(1.5);
#else
  n.fill(1);
#endif
  (void)device, (void)n, (void)x, (void)h;
}
