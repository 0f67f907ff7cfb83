// expect: max(x, 0) is ambiguous
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("max_literal_0", [](In<f32, 2> x) {
  Tile f = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  Tile larger = max(f, 0);
#else
  Tile larger = max(f, axis(0)) + max(f, {0}) + max(f) + maximum(f, 0) + max(f, -2) + max(f, 1);
#endif
});
