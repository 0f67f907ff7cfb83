// expect: tessera: the combined tiles must have the same rank
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("reduce_ranks", [](In<f32, 2> x) {
  Tile t = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  auto both = reduce(std::tuple(t, item(sum(t))), 1, [](auto a, auto) { return a; }, {0, 0});
#else
  auto both = reduce(std::tuple(t, sum(t)), 1, [](auto a, auto) { return a; }, {0, 0});
#endif
});
