// expect: a number alone has no element type; write constant<f32>(x)
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("tile_from_number", []() {
#ifndef GOOD
  Tile half = 0.5f;
#else
  Tile half = constant<f32>(0.5f);
#endif
});
