// expect: where takes a condition of pred first
#include <tessera/tensors.hpp>

using namespace tessera;

auto subject(Lazy<f32, 2> x) {
#ifndef GOOD
  return where(x, x, 0);
#else
  return where(x > 0, x, 0);
#endif
}
