// expect: the larger of two values is maximum(x, y)
#include <algorithm>

#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("std_max", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile t = load(x, {0}, {8});
#ifndef GOOD
  store(y, {0}, std::max(t, 0.0f));
#else
  store(y, {0}, maximum(t, 0.0f));
#endif
});
