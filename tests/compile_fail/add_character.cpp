// expect: a bool or a character is not a number here
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("add_character", [](In<i32, 2> x) {
  Tile f = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  Tile next = f + 'a';
#else
  Tile next = f + 97;
#endif
});
