// expect: a kernel's parameters are In, Out, InOut, Optional or List of these, and Scalar
#include <tessera/tessera.hpp>

using namespace tessera;

#ifndef GOOD
auto subject = kernel("parameter_int", [](int) {});
#else
auto subject = kernel("parameter_int", [](Scalar<i32>) {});
#endif
