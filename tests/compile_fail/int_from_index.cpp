// expect: cannot convert
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("int_from_index", [](In<f32, 1> x, Out<f32, 1> y) {
#ifndef GOOD
  int extent = x.extent(0);
#else
  Index extent = x.extent(0);
#endif
});
