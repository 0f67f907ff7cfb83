// expect: matmul takes matrices, tensors of rank 2 or more
#include <tessera/tensors.hpp>

using namespace tessera;

auto subject(Lazy<f32, 2> x, Lazy<f32, 1> y) {
#ifndef GOOD
  return matmul(x, y);
#else
  return matmul(x, y.reshape({4, 1}));
#endif
}
