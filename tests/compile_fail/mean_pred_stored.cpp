// expect: mean takes f32 or f64
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("mean_pred_stored", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile t = load(x, {0}, {8});
#ifndef GOOD
  store(y, {0}, mean(t > 0, axis(0)));
#else
  store(y, {0}, mean(cast<f32>(t > 0), axis(0)));
#endif
});
