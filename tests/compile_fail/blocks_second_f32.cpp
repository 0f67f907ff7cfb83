// expect: an extent or a count is an Index: i32, rank 0
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("blocks_second_f32", [](In<f32, 1> x, Scalar<f32> s) {
#ifndef GOOD
  auto [i, j] = blocks(2, s);
#else
  auto [i, j] = blocks(2, cast<i32>(s));
#endif
});
