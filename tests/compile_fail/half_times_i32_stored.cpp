// expect: a floating literal meets an integer tile
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("half_times_i32_stored", [](In<i32, 1> n, Out<f32, 1> y) {
  Tile i = load(n, {0}, {8});
#ifndef GOOD
  store(y, {0}, 0.5 * i);
#else
  store(y, {0}, 0.5 * cast<f32>(i));
#endif
});
