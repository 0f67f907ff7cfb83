// expect: a bool or a character is not a number here
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("full_character", [](In<f32, 2> x) {
#ifndef GOOD
  Tile filled = full<u8>({8}, 'a');
#else
  Tile filled = full<u8>({8}, 97);
#endif
});
