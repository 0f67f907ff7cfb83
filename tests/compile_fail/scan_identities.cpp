// expect: tessera: scan takes an identity for each tile
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("scan_identities", [](In<f32, 2> x) {
  Tile t = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  auto both = scan(std::tuple(t, t), 1, [](auto a, auto) { return a; }, {0});
#else
  auto both = scan(std::tuple(t, t), 1, [](auto a, auto) { return a; }, {0, 0});
#endif
});
