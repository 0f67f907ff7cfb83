// expect: tessera: permute must name each axis of the view once
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("permute_view_axes", [](In<f32, 2> x) {
#ifndef GOOD
  auto transposed = x.permute({0, 2, 1});
#else
  auto transposed = x.permute({1, 0});
#endif
});
