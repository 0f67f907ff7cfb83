// expect: tessera: load takes an index for each axis
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("load_index_count", [](In<f32, 2> x) {
#ifndef GOOD
  Tile f = load(x, {0}, {1, 8});
#else
  Tile f = load(x, {0, 0}, {1, 8});
#endif
});
