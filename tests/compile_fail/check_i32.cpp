// expect: tessera: check takes a comparison, of any shape
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("check_i32", [](In<i32, 1> x) {
  Tile xs = load(x, {0}, {8});
#ifndef GOOD
  check(xs, "positive");
#else
  check(xs > 0, "positive");
#endif
});
