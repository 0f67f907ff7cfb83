// expect: tessera: same_extents takes two or more tensors
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("same_extents_one", [](In<f32, 1> x, Out<f32, 1> y, Scalar<f32> a) {
#ifndef GOOD
  same_extents(x, y, a);
#else
  same_extents(x, y);
#endif
  store(y, {0}, load(x, {0}, {4}) + a);
});
