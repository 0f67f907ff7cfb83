// expect: tessera: cast takes an element type
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("cast_char", [](In<f32, 1> x) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  Tile wide = cast<char>(f);
#else
  Tile wide = cast<f32>(f);
#endif
});
