// expect: tessera: an activation takes a tile
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("gelu_number", [](In<f32, 1> x, Out<f32, 1> y) {
#ifndef GOOD
  Tile t = gelu(2.0f);
#else
  Tile t = gelu(constant<f32>(2.0f));
#endif
});
