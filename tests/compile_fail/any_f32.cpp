// expect: logical ops take pred tiles
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("any_f32", [](In<f32, 2> x) {
#ifndef GOOD
  Tile some = any(load(x, {0, 0}, {8, 8}), 1);
#else
  Tile some = any(load(x, {0, 0}, {8, 8}) > 0, 1) & all(load(x, {0, 0}, {8, 8}) < 1);
#endif
});
