// expect: the tensor's rank is not the parameter's; which argument: see `argument = N` above
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("launch_rank", [](In<f32, 1>, Out<f32, 1>, Scalar<f32>, Scalar<i32>) {});

void start(const Stream& stream, const Tensor<f32, 1>& x, const Tensor<f32, 1>& y, const Tensor<f32, 2>& b) {
#ifndef GOOD
  launch(stream, subject, x, b, 1.0f, 2);
#else
  launch(stream, subject, x, y, 1.0f, 2);
#endif
}
