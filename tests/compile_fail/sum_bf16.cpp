// expect: storage types and pred have no arithmetic; cast<f32>(x) or cast<i32>(x) first
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("sum_bf16", [](In<bf16, 1> b) {
  Tile h = load(b, {0}, {8});
#ifndef GOOD
  Tile total = sum(h, 0);
#else
  Tile total = sum(cast<f32>(h), 0);
#endif
});
