// expect: a value read from an InOut must be named before it is used
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("load_inout_unnamed", [](InOut<f32, 1> y) {
#ifndef GOOD
  store(y, {0}, load(y, {0}, {8}) + 1);
#else
  Tile f = load(y, {0}, {8});
  store(y, {0}, f + 1);
#endif
});
