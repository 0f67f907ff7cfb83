// expect: a pred is not a number: cast<i32>(p) is 0 or 1
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("sum_pred_stored", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile t = load(x, {0}, {8});
#ifndef GOOD
  store(y, {0}, sum(t > 0, 0));
#else
  store(y, {0}, sum(cast<f32>(t > 0), 0));
#endif
});
