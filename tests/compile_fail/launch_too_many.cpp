// expect: a launch needs as many arguments as the kernel has parameters
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("launch_too_many", [](In<f32, 1>, Out<f32, 1>, Scalar<f32>, Scalar<i32>) {});

void start(const Stream& stream, const Tensor<f32, 1>& x, const Tensor<f32, 1>& y) {
#ifndef GOOD
  launch(stream, subject, x, y, 1.0f, 2, 3);
#else
  launch(stream, subject, x, y, 1.0f, 2);
#endif
}
