// expect: tessera: the element types of tensors are f32 f64 f16
#include <tessera/tessera.hpp>

using namespace tessera;

#ifndef GOOD
auto subject = kernel("in_tf32", [](In<tf32, 1>) {});
#else
auto subject = kernel("in_tf32", [](In<f32, 1>) {});
#endif
