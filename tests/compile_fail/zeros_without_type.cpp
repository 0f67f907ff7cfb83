// expect: no matching function
#include "api/tessera.hpp"

using namespace tessera;

auto subject = kernel("zeros_without_type", []() {
#ifndef GOOD
  Tile zero = zeros({8});
#else
  Tile zero = zeros<f32>({8});
#endif
});
