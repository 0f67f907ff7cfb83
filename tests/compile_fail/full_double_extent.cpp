// expect: tessera: a tile's extents are C++ integers
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("full_double_extent", []() {
#ifndef GOOD
  Tile zero = zeros<f32>({4, 2.5});
#else
  Tile zero = zeros<f32>({4, 2});
#endif
});
