// expect: tessera: an if_ has one else_
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("else_twice", [](In<f32, 2> x, Out<f32, 2> y) {
  Tile t = load(x, {0, 0}, {4, 4});
#ifndef GOOD
  if_(item(any(t > 0)), [&] { store(y, {0, 0}, t); }).else_([&] {}).else_([&] {});
#else
  if_(item(any(t > 0)), [&] { store(y, {0, 0}, t); }).else_([&] {});
#endif
});
