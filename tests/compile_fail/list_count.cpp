// expect: tessera: a List has 1 to 1024 tensors
#include <tessera/tessera.hpp>

using namespace tessera;

#ifndef GOOD
constexpr int most = 0;
#else
constexpr int most = 3;
#endif

auto subject =
    kernel("list_count", [](List<In<f32, 1>, most> xs, Out<f32, 1> y) { store(y, {0}, load(xs[0], {0}, {8})); });
