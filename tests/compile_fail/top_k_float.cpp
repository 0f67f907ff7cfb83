// expect: tessera: a start, an extent, a step or a count is a C++ integer here
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("top_k_float", [](In<f32, 2> x) {
  Tile t = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  auto [value, index] = top_k(t, 2.5, 1);
#else
  auto [value, index] = top_k(t, 2, 1);
#endif
});
