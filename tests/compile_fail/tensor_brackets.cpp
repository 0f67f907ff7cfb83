// expect: a Tensor has no [ ]
#include <tessera/tessera.hpp>

using namespace tessera;

float first(const Tensor<f32, 1>& x) {
#ifndef GOOD
  return x[0];
#else
  return x.to_vector()[0];
#endif
}
