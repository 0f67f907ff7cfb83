// expect: tessera: a launch takes its stream first
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("launch_without_stream", [](In<f32, 1>) {});

void start(const Stream& stream, const Tensor<f32, 1>& x) {
#ifndef GOOD
  launch(subject, x);
#else
  launch(stream, subject, x);
#endif
}
