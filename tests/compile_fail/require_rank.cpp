// expect: require takes a comparison of rank 0
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("require_rank", [](In<i32, 1> n) {
  Tile i = load(n, {0}, {8});
#ifndef GOOD
  require(i > 0, "positive");
#else
  require(n.extent(0) > 0, "elements");
#endif
});
