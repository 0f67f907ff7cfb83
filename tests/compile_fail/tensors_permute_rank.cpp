// expect: permute must name each axis of the tensor once
#include <tessera/tensors.hpp>

using namespace tessera;

auto subject(Lazy<f32, 3> x) {
#ifndef GOOD
  return x.permute({1, 0});
#else
  return x.permute({1, 0, 2});
#endif
}
