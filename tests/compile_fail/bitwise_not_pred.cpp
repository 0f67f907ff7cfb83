// expect: tessera: ~ takes integers; for a pred write !p
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("bitwise_not_pred", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile p = load(x, {0}, {8}) > 0;
#ifndef GOOD
  Tile other = ~p;
#else
  Tile other = !p;
#endif
});
