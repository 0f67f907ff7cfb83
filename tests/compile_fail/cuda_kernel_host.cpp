// expect: the host function of a cuda_kernel takes the kernel's arguments
#include <tessera/tessera.hpp>

using namespace tessera;

#ifndef GOOD
auto host = [](const float*) {};
#else
auto host = [](const float*, float*, float, int) {};
#endif
auto subject = cuda_kernel(
    "host", "text",
    [](In<f32, 1> x, Out<f32, 1>, Scalar<f32>) {
  return CudaLaunch{.blocks = {x.extent(0)}, .threads = {32}, .numbers = {x.extent(0)}};
    },
    host);
