// expect: tessera: squeeze takes a tile of rank 1 or more
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("squeeze_rank_0", [](In<f32, 2> x) {
  Tile t = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  Tile s = squeeze(item(sum(t)), 0);
#else
  Tile s = squeeze(sum(t), 0);
#endif
});
