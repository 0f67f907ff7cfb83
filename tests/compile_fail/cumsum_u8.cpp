// expect: have no arithmetic; cast<f32>(x) or cast<i32>(x) first
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("cumsum_u8", [](In<u8, 1> b) {
  Tile h = load(b, {0}, {8});
#ifndef GOOD
  Tile sums = cumsum(h, 0);
#else
  Tile sums = cumsum(cast<i32>(h), 0);
#endif
});
