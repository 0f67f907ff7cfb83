// expect: max(x, 0) is ambiguous
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("min_literal_0", [](In<i32, 2> x) {
  Tile f = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  Tile smaller = min(f, 0);
#else
  Tile smaller = min(f, axis(0));
#endif
});
