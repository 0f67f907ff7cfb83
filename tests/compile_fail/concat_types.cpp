// expect: concat takes tiles of the same element type
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("concat_types", [](In<f32, 1> x, In<i32, 1> n) {
  Tile f = load(x, {0}, {8});
  Tile i = load(n, {0}, {8});
#ifndef GOOD
  Tile both = concat(0, f, i);
#else
  Tile both = concat(0, f, cast<f32>(i));
#endif
});
