// expect: tessera: zeros needs an element type: zeros<f32>({..})
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("zeros_without_type", []() {
#ifndef GOOD
  Tile zero = zeros({8});
#else
  Tile zero = zeros<f32>({8});
#endif
});
