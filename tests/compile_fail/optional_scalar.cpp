// expect: tessera: an Optional parameter is an In, Out or InOut; give a Scalar a default
#include <tessera/tessera.hpp>

using namespace tessera;

#ifndef GOOD
auto subject =
    kernel("optional_scalar", [](Optional<Scalar<f32>>, Out<f32, 1> y) { store(y, {0}, full<f32>({8}, 1)); });
#else
auto subject = kernel("optional_scalar", [](Scalar<f32> a, Out<f32, 1> y) { store(y, {0}, full<f32>({8}, 1) * a); });
#endif
