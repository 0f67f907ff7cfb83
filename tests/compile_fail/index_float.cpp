// expect: an index is an integer or an Index
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("index_float", [](In<f32, 1> x) {
#ifndef GOOD
  Tile f = load(x, {0.5}, {8});
#else
  Tile f = load(x, {0}, {8});
#endif
});
