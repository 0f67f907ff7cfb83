// expect: a value read from an InOut must be named before it is used
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("load_inout_stored", [](Out<f32, 1> y, InOut<f32, 1> z) {
#ifndef GOOD
  store(y, {0}, load(z, {0}, {8}));
#else
  Tile f = load(z, {0}, {8});
  store(y, {0}, f);
#endif
});
