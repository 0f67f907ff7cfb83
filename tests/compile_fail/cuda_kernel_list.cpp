// expect: tessera: a cuda_kernel's parameters are In, Out, InOut and Scalar
#include <tessera/tessera.hpp>

using namespace tessera;

#ifndef GOOD
auto subject = cuda_kernel("cuda_kernel_list", "", [](List<In<f32, 1>, 2>, Out<f32, 1>) {
#else
auto subject = cuda_kernel("cuda_kernel_list", "", [](In<f32, 1>, Out<f32, 1>) {
#endif
  return CudaLaunch{.blocks = {1}, .threads = {32}};
});
