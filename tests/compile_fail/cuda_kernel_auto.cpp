// expect: tessera: the launch of a cuda_kernel must be a non-mutable lambda without auto parameters
#include <tessera/tessera.hpp>

using namespace tessera;

#ifndef GOOD
auto subject = cuda_kernel("auto", "text", [](In<f32, 1> x, auto) {
#else
auto subject = cuda_kernel("auto", "text", [](In<f32, 1> x, Out<f32, 1>) {
#endif
  return CudaLaunch{.blocks = {x.extent(0)}, .threads = {32}};
});
