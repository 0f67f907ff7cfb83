// expect: the larger of two values is maximum(x, y)
#include <algorithm>

#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("std_max_number", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile t = load(x, {0}, {8});
#ifndef GOOD
  store(y, {0}, std::max(0.0f, t));
#else
  store(y, {0}, maximum(0.0f, t));
#endif
});
