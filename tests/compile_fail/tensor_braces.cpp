// expect: tessera: a tensor is constructed from its extents; Tensor<T, R>::of makes one from values in braces
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
