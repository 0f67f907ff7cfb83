// expect: a parameter of an integer type takes an integer
#include <tessera/tensors.hpp>

using namespace tessera;

auto subject(const Tensor<f32, 2>& x) {
#ifndef GOOD
  return compile([](Lazy<f32, 2> a, Lazy<i32, 0> n) { return a * n.cast<f32>(); })(x, 2.5);
#else
  return compile([](Lazy<f32, 2> a, Lazy<i32, 0> n) { return a * n.cast<f32>(); })(x, 2);
#endif
}
