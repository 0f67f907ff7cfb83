// expect: tessera: name the options of a scan: cumsum(x, 1, {.reverse = true, .exclusive = true})
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("cumsum_bool", [](In<f32, 2> x, Out<f32, 2> y) {
  Tile t = load(x, {0, 0}, {4, 4});
#ifndef GOOD
  Tile m = cumsum(t, 1, true);
#else
  Tile m = cumsum(t, 1, {.reverse = true});
#endif
});
