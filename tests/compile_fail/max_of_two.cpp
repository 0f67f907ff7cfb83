// expect: for two values, maximum(a, b) is the larger
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("max_of_two", [](In<f32, 2> x) {
  Tile f = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  Tile larger = max(f, f + 1);
#else
  Tile larger = maximum(f, f + 1);
#endif
});
