// expect: tensors of different element types; cast<...>() one of them first
#include <tessera/tensors.hpp>

using namespace tessera;

auto subject(Lazy<f32, 2> x, Lazy<bf16, 2> y) {
#ifndef GOOD
  return x + y;
#else
  return x + y.cast<f32>();
#endif
}
