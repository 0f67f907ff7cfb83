// expect: structured binding
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("blocks_count", [](In<f32, 1> x) {
#ifndef GOOD
  auto [i, j, l] = blocks(2, 3);
#else
  auto [i, j] = blocks(2, 3);
#endif
});
