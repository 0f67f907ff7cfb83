// expect: constraint
#include "api/tessera.hpp"

using namespace tessera;

#ifndef GOOD
auto subject = kernel("in_double", [](In<double, 1>) {});
#else
auto subject = kernel("in_double", [](In<f32, 1>) {});
#endif
