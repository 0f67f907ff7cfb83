// expect: a parameter Lazy<T, R> of a compiled function takes a Tensor<T, R>
#include <tessera/tensors.hpp>

using namespace tessera;

auto subject(const Tensor<f16, 2>& x) {
#ifndef GOOD
  return compile([](Lazy<f32, 2> a) { return a + 1; })(x);
#else
  return compile([](Lazy<f16, 2> a) { return a + 1; })(x);
#endif
}
