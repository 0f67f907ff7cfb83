// expect: tessera: a start, an extent, a step or a count is a C++ integer here
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("unroll_float", [](In<f32, 2> x) {
  Tile t = load(x, {0, 0}, {8, 8});
#ifndef GOOD
  for (Index i : range(8).unroll(1.5)) Tile s = t + cast<f32>(i);
#else
  for (Index i : range(8).unroll(2)) Tile s = t + cast<f32>(i);
#endif
});
