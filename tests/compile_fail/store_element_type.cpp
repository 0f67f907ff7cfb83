// expect: the tile and the tensor have different element types; cast<T>(tile)
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("store_element_type", [](In<f32, 1> x, Out<bf16, 1> y) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  store(y, {0}, f);
#else
  store(y, {0}, cast<bf16>(f));
#endif
});
