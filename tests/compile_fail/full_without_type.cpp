// expect: tessera: full needs an element type: full<f32>({..}, x)
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("full_without_type", [](In<f32, 2> x, Out<f32, 2> y) {
  Tile t = load(x, {0, 0}, {4, 4});
#ifndef GOOD
  Tile m = full({4, 4}, 1);
#else
  Tile m = full<f32>({4, 4}, 1);
#endif
});
