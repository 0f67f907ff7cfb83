// expect: the tile and the tensor have different element types; cast<T>(tile)
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("atomic_add_element_type", [](In<i32, 1> n, InOut<f32, 1> y) {
  Tile i = load(n, {0}, {8});
#ifndef GOOD
  atomic_add(y, {0}, i);
#else
  atomic_add(y, {0}, cast<f32>(i));
#endif
});
