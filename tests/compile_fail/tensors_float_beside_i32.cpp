// expect: a floating-point number beside a tensor of integers
#include <tessera/tensors.hpp>

using namespace tessera;

auto subject(Lazy<i32, 2> x) {
#ifndef GOOD
  return x * 0.5;
#else
  return x.cast<f32>() * 0.5;
#endif
}
