// expect: tensors of different element types; cast<...>() one of them first
#include <tessera/tensors.hpp>

using namespace tessera;

auto subject(Lazy<f32, 2> x, Lazy<f16, 2> y) {
#ifndef GOOD
  return where(x > 0, x, y);
#else
  return where(x > 0, x, y.cast<f32>());
#endif
}
