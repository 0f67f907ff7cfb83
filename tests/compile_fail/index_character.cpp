// expect: a bool or a character is not a number here
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("index_character", [](In<f32, 2> x) {
#ifndef GOOD
  Tile f = load(x, {'\1', 0}, {8, 8});
#else
  Tile f = load(x, {1, 0}, {8, 8});
#endif
});
