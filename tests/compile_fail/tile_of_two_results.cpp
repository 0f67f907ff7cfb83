// expect: tessera: these are two tiles: auto [value, index] = max_with_index(x, 1)
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("tile_of_two_results", [](In<f32, 2> x, Out<f32, 2> y) {
  Tile t = load(x, {0, 0}, {4, 4});
#ifndef GOOD
  Tile m = max_with_index(t, 1);
#else
  auto [m, i] = max_with_index(t, 1);
#endif
});
