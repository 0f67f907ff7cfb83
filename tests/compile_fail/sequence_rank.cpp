// expect: tessera: the tensor's rank is not the parameter's
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("sequence_rank", [](In<f32, 1>, Out<f32, 1>) {});

void start(Sequence& sequence, const Tensor<f32, 1>& x, const Tensor<f32, 2>& y, const Tensor<f32, 1>& z) {
#ifndef GOOD
  sequence.add(subject, x, y);
#else
  sequence.add(subject, x, z);
#endif
  (void)y, (void)z;
}
