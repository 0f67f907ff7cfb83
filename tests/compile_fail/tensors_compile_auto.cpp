// expect: compile takes a lambda whose parameters have types
#include <tessera/tensors.hpp>

using namespace tessera;

auto subject(const Tensor<f32, 2>& x) {
#ifndef GOOD
  return compile([](auto a) { return a + 1; })(x);
#else
  return compile([](Lazy<f32, 2> a) { return a + 1; })(x);
#endif
}
