// expect: if_ and while_ take a condition of rank 0, as item(any(x)) is; for tiles use where(condition, a, b)
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("if_rank", [](In<f32, 2> x, Out<f32, 2> y) {
  Tile f = load(x, {0, 0}, {4, 8});
#ifndef GOOD
  if_(f > 0, [&] { store(y, {0, 0}, f); });
#else
  if_(x.extent(0) > 0, [&] { store(y, {0, 0}, f); });
#endif
});
