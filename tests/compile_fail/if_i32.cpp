// expect: if_ and while_ take a condition of rank 0, as item(any(x)) is; for tiles use where(condition, a, b)
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("if_i32", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile f = load(x, {0}, {8});
#ifndef GOOD
  if_(x.extent(0), [&] { store(y, {0}, f); });
#else
  if_(x.extent(0) > 0, [&] { store(y, {0}, f); });
#endif
});
