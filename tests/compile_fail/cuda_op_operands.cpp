// expect: a cuda_op takes as many operands as its function
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("operands", [](In<f32, 1> x, Out<f32, 1> y) {
  const auto f = cuda_op("f", "a + b", [](float a, float b) { return a + b; });
  Tile t = load(x, {0}, {8});
#ifndef GOOD
  store(y, {0}, f(t));
#else
  store(y, {0}, f(t, 1));
#endif
});
