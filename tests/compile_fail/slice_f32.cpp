// expect: an index is an Index: i32, rank 0
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("slice_f32", [](In<f32, 1> x, Scalar<f32> at) {
#ifndef GOOD
  auto part = x.slice(0, at, 8);
#else
  auto part = x.slice(0, cast<i32>(at), 8);
#endif
});
