// expect: for two values, maximum(a, b) is the larger
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("extent_float_axis", [](In<f32, 2> x) {
#ifndef GOOD
  Index rows = x.extent(0.0f);
#else
  Index rows = x.extent(0);
#endif
});
