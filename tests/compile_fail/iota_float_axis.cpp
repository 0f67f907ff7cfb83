// expect: for two values, maximum(a, b) is the larger
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("iota_float_axis", [](In<f32, 2> x) {
#ifndef GOOD
  Tile positions = iota({8, 8}, 1.0f);
#else
  Tile positions = iota({8, 8}, 1) + iota({8, 8}, 0);
#endif
});
