// expect: tessera: a List consists of In, Out or InOut
#include <tessera/tessera.hpp>

using namespace tessera;

#ifndef GOOD
auto subject = kernel("list_of_optional",
                      [](List<Optional<In<f32, 1>>, 4> xs, Out<f32, 1> y) { store(y, {0}, load(xs[0], {0}, {8})); });
#else
auto subject =
    kernel("list_of_optional", [](List<In<f32, 1>, 4> xs, Out<f32, 1> y) { store(y, {0}, load(xs[0], {0}, {8})); });
#endif
