// expect: tessera: else_if is not supported: write .else_([&] { if_(condition, ...); })
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("else_if", [](In<f32, 2> x, Out<f32, 2> y) {
  Tile t = load(x, {0, 0}, {4, 4});
#ifndef GOOD
  if_(item(any(t > 0)), [&] { store(y, {0, 0}, t); }).else_if(item(any(t > 1)), [&] {});
#else
  if_(item(any(t > 0)), [&] { store(y, {0, 0}, t); }).else_([&] { if_(item(any(t > 1)), [&] {}); });
#endif
});
