// expect: tessera: name the options of a sort: sort(x, 1, {.descending = true})
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("sort_bool", [](In<f32, 2> x) {
  Tile t = load(x, {0, 0}, {4, 4});
#ifndef GOOD
  Tile m = sort(t, 1, true);
#else
  Tile m = sort(t, 1, {.descending = true});
#endif
});
