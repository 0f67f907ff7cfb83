// expect: tessera: print takes its text first, as in print("x is {}", x)
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("print_without_text", [](In<f32, 2> x, Out<f32, 2> y) {
  Tile t = load(x, {0, 0}, {4, 4});
#ifndef GOOD
  print(t);
#else
  print("{}", t);
#endif
});
