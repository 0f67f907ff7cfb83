// expect: a Tile must be initialized
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("tile_of_type_without_value", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile t = load(x, {0}, {8});
#ifndef GOOD
  Tile<f32, 1> u;
  store(y, {0}, u);
#else
  Tile<f32, 1> u = t;
  store(y, {0}, u);
#endif
});
