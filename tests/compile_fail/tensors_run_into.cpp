// expect: run(out) takes a Tensor of the expression's element type and rank
#include <tessera/tensors.hpp>

using namespace tessera;

auto subject(Lazy<f16, 2> x, const Tensor<f32, 2>& y) {
#ifndef GOOD
  return x.run(y);
#else
  return x.cast<f32>().run(y);
#endif
}
