// expect: tessera: with several tiles, write the identities in braces, one for each: {0, 0}
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("reduce_one_identity", [](In<f32, 2> x, Out<f32, 2> y) {
  Tile t = load(x, {0, 0}, {4, 4});
  auto f = [](const auto& a, const auto&) { return a; };
#ifndef GOOD
  auto [a, b] = reduce(std::tuple(t, t), 1, f, 0);
#else
  auto [a, b] = reduce(std::tuple(t, t), 1, f, {0, 0});
#endif
});
