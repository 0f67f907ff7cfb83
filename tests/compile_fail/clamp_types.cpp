// expect: the operands have different element types; cast<T>(x) one of them
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("clamp_types", [](In<f32, 1> x, In<i32, 1> n) {
  Tile f = load(x, {0}, {8});
  Tile i = load(n, {0}, {8});
#ifndef GOOD
  Tile y = clamp(f, 0, i);
#else
  Tile y = clamp(f, 0, cast<f32>(i));
#endif
});
