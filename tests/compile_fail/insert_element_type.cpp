// expect: the tile and the part have different element types; cast<T>(part)
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("insert_element_type", [](In<f32, 1> x, In<bf16, 1> z, Out<f32, 1> y) {
  Tile t = load(x, {0}, {8}), part = cast<f32>(load(z, {0}, {4}));
#ifndef GOOD
  store(y, {0}, insert(t, {1}, load(z, {0}, {4})));
#else
  store(y, {0}, insert(t, {1}, part));
#endif
});
