// expect: tessera: a tensor is given its extents; from values in braces it is made by Tensor<T, R>::of
#include <tessera/tessera.hpp>

using namespace tessera;

void use(const Device& device) {
#ifndef GOOD
  Tensor<f32, 2> x(device, {{1, 2}, {3, 4}});
#else
  auto x = Tensor<f32, 2>::of(device, {{1, 2}, {3, 4}});
#endif
  (void)x;
}
