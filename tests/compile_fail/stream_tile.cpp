// expect: a tile has no value yet when the kernel is traced; print("x is {}", x)
#include <iostream>

#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("stream_tile", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile t = load(x, {0}, {8});
  store(y, {0}, t);
#ifndef GOOD
  std::cout << "t is " << t << "\n";
#else
  print("t is {}", t);
#endif
});
