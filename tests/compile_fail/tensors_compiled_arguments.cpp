// expect: a compiled function takes as many arguments as it has parameters
#include <tessera/tensors.hpp>

using namespace tessera;

auto subject(const Tensor<f32, 2>& x) {
#ifndef GOOD
  return compile([](Lazy<f32, 2> a, Lazy<f32, 2> b) { return a + b; })(x);
#else
  return compile([](Lazy<f32, 2> a, Lazy<f32, 2> b) { return a + b; })(x, x);
#endif
}
