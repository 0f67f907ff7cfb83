// expect: tessera: mean takes f32 or f64; cast<f32>(x) first
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("mean_i32", [](In<i32, 2> x) {
#ifndef GOOD
  Tile middle = mean(load(x, {0, 0}, {8, 8}), {0, 1});
#else
  Tile middle = mean(cast<f32>(load(x, {0, 0}, {8, 8})), {0, 1});
#endif
});
