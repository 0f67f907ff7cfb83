// expect: this op takes f32; cast<f32>(x) first
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("approx_f64", []() {
  Tile a = zeros<f64>({8});
#ifndef GOOD
  Tile b = sin_approx(a);
#else
  Tile b = sin(a);
#endif
});
