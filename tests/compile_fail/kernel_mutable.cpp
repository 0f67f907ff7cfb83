// expect: a kernel must be a non-mutable lambda without auto parameters
#include <tessera/tessera.hpp>

using namespace tessera;

#ifndef GOOD
auto subject = kernel("kernel_mutable", [calls = 0](In<f32, 1>) mutable { ++calls; });
#else
auto subject = kernel("kernel_mutable", [](In<f32, 1>) {});
#endif
