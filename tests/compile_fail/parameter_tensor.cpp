// expect: a kernel's parameters are In, Out, InOut, Optional or List of these, and Scalar
#include <tessera/tessera.hpp>

using namespace tessera;

#ifndef GOOD
auto subject = kernel("parameter_tensor", [](Tensor<f32, 1>) {});
#else
auto subject = kernel("parameter_tensor", [](In<f32, 1>) {});
#endif
