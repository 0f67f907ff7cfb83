// expect: storage types and pred have no arithmetic; cast<f32>(x) or cast<i32>(x) first
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("exp_f16", [](In<f16, 1> b, Out<f32, 1> y) {
  Tile h = load(b, {0}, {8});
#ifndef GOOD
  store(y, {0}, cast<f32>(exp(h)));
#else
  store(y, {0}, exp(cast<f32>(h)));
#endif
});
