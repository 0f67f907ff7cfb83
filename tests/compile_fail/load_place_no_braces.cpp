// expect: load takes the position and the shape in braces
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("load_place_no_braces", [](In<f32, 1> x, Out<f32, 1> y) {
  Index i = blocks(4);
#ifndef GOOD
  Tile t = load(x, i, {64});
  store(y, {i}, t);
#else
  Tile t = load(x, {i}, {64});
  store(y, {i}, t);
#endif
});
