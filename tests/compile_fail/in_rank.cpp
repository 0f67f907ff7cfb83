// expect: a tensor has 1 to 6 axes
#include <tessera/tessera.hpp>

using namespace tessera;

#ifndef GOOD
auto subject = kernel("in_rank", [](In<f32, 0>) {});
#else
auto subject = kernel("in_rank", [](In<f32, 1>) {});
#endif
