// expect: a tile's extents are C++ integers, known when the kernel is traced
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("load_shape_index", [](In<f32, 1> x) {
#ifndef GOOD
  Tile f = load(x, {0}, {x.extent(0)});
#else
  Tile f = load(x, {0}, {8});
#endif
});
