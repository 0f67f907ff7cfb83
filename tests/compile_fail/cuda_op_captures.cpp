// expect: the function of a cuda_op is a lambda without captures, of numbers of one element type
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("captures", [](In<f32, 1> x, Out<f32, 1> y) {
#ifndef GOOD
  float slope = 2;
  const auto steeper = cuda_op("steeper", "2.0f * a", [=](float a) { return slope * a; });
#else
  const auto steeper = cuda_op("steeper", "2.0f * a", [](float a) { return 2 * a; });
#endif
  store(y, {0}, steeper(Tile(load(x, {0}, {8}))));
});
