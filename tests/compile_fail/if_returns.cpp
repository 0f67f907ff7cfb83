// expect: tessera: if_, else_ and while_ return no value: let the lambda assign to a Var
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("if_returns", [](In<f32, 2> x, Out<f32, 2> y) {
  Tile t = load(x, {0, 0}, {4, 4});
#ifndef GOOD
  if_(item(any(t > 0)), [&] { return t; });
#else
  if_(item(any(t > 0)), [&] { store(y, {0, 0}, t); });
#endif
});
