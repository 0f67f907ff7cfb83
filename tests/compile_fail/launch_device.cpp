// expect: tessera: a kernel is launched on a stream
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("launch_device", [](In<f32, 1>) {});

void start(const Device& device, const Tensor<f32, 1>& x) {
#ifndef GOOD
  launch(device, subject, x);
#else
  launch(device.stream(), subject, x);
#endif
}
