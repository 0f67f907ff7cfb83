// expect: tessera: a condition is computed in the kernel, from extents, scalars or tiles; for a value known
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("while_bool", [](In<f32, 2> x, Out<f32, 2> y) {
  Tile t = load(x, {0, 0}, {4, 4});
#ifndef GOOD
  while_([] { return true; }, [&] { store(y, {0, 0}, t); });
#else
  Var i = constant<i32>(0);
  while_([&] { return i < 3; }, [&] { i += 1; });
  store(y, {0, 0}, t);
#endif
});
