// expect: this function takes tensors of floating-point numbers
#include <tessera/tensors.hpp>

using namespace tessera;

auto subject(Lazy<i32, 2> x) {
#ifndef GOOD
  return softmax(x);
#else
  return softmax(x.cast<f32>());
#endif
}
