// expect: tessera: if_ returns no value: let it assign to a Var, or use where(condition, a, b)
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("if_tile_of", [](In<f32, 2> x, Out<f32, 2> y) {
  Tile t = load(x, {0, 0}, {4, 4});
#ifndef GOOD
  Tile m = if_(item(any(t > 0)), [&] { store(y, {0, 0}, t); });
#else
  Tile m = where(any(t > 0), t, 0);
#endif
});
