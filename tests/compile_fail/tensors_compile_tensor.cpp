// expect: the parameters of the function given to compile are of type Lazy<T, R>
#include <tessera/tensors.hpp>

using namespace tessera;

auto subject(const Tensor<f32, 2>& x) {
#ifndef GOOD
  return compile([](Tensor<f32, 2> a) { return tile(a) + 1; })(x);
#else
  return compile([](Lazy<f32, 2> a) { return a + 1; })(x);
#endif
}
