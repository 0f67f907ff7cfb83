// expect: a launch needs as many arguments as the kernel has parameters
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("sequence_too_few", [](In<f32, 1>, Out<f32, 1>, Scalar<f32>) {});

void start(Sequence& sequence, const Tensor<f32, 1>& x, const Tensor<f32, 1>& y) {
#ifndef GOOD
  sequence.add(subject, x, y);
#else
  sequence.add(subject, x, y, 1.0f);
#endif
}
