// expect: tessera: name the options of top_k: top_k(x, 8, 1, {.smallest = true})
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("top_k_bool", [](In<f32, 2> x) {
  Tile t = load(x, {0, 0}, {4, 16});
#ifndef GOOD
  auto [m, i] = top_k(t, 8, 1, true);
#else
  auto [m, i] = top_k(t, 8, 1, {.smallest = true});
#endif
});
