// expect: the function of a cuda_kernel must return a CudaLaunch
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = cuda_kernel("returns", "text", [](In<f32, 1> x, Out<f32, 1> y) {
#ifndef GOOD
  require(x.extent(0) == y.extent(0), "as long");
#else
  return CudaLaunch{.blocks = {x.extent(0)}, .threads = {32}};
#endif
});
