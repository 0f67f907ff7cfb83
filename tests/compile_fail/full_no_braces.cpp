// expect: write the shape in braces: full<f32>
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("full_no_braces", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile t = load(x, {0}, {8});
#ifndef GOOD
  store(y, {0}, t + full<f32>(8, 1));
#else
  store(y, {0}, t + full<f32>({8}, 1));
#endif
});
