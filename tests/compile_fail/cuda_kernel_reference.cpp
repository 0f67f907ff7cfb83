// expect: a kernel takes its parameters by value
#include <tessera/tessera.hpp>

using namespace tessera;

const CudaSource text = "";
#ifndef GOOD
auto subject = cuda_kernel("cuda_kernel_reference", text, [](Out<f32, 1>& y) {
#else
auto subject = cuda_kernel("cuda_kernel_reference", text, [](Out<f32, 1> y) {
#endif
  return CudaLaunch{.blocks = {1}, .threads = {y.extent(0)}};
});
