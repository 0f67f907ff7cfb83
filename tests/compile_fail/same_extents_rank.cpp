// expect: tessera: same_extents takes tensors of the same rank
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("same_extents_rank", [](In<f32, 2> x, In<f32, 1> b, Out<f32, 2> y) {
#ifndef GOOD
  same_extents(x, b);
#else
  same_extents(x, y);
#endif
  store(y, {0, 0}, load(x, {0, 0}, {4, 4}) + load(b, {0}, {4}));
});
