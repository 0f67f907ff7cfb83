// expect: a kernel must be a non-mutable lambda without auto parameters
#include <tessera/tessera.hpp>

using namespace tessera;

#ifndef GOOD
auto subject = kernel("parameter_auto", [](auto) {});
#else
auto subject = kernel("parameter_auto", [](In<f32, 1>) {});
#endif
