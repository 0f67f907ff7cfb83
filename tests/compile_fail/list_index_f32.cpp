// expect: tessera: an index is an Index: i32, rank 0
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject =
    kernel("list_index_f32", [](List<In<f32, 1>, 4> xs, Scalar<f32> real, Scalar<i32> number, Out<f32, 1> y) {
#ifndef GOOD
  store(y, {0}, load(xs[real], {0}, {8}));
#else
  store(y, {0}, load(xs[number], {0}, {8}) * real);
#endif
});
