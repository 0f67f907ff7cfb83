// expect: the function must return, for each tile, an expression of the tile's element type
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("scan_result_type", [](In<f32, 2> x) {
  Tile t = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  Tile t2 = scan(t, 1, [](auto a, auto b) { return a < b; }, 0);
#else
  Tile t2 = scan(t, 1, [](auto a, auto b) { return maximum(a, b); }, 0);
#endif
});
