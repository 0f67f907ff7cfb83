// expect: for loops for (Index i : range(n))
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("for_int", [](In<f32, 2> x, Out<f32, 1> y) {
#ifndef GOOD
  for (int j = 0; j < x.extent(1); ++j) store(y, {j}, full<f32>({1}, 1));
#else
  for (Index j : range(x.extent(1))) store(y, {j}, full<f32>({1}, 1));
#endif
});
