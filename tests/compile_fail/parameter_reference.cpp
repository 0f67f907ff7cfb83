// expect: a kernel takes its parameters by value
#include <tessera/tessera.hpp>

using namespace tessera;

#ifndef GOOD
auto subject = kernel("parameter_reference", [](In<f32, 1> x, Out<f32, 1>& y) {
#else
auto subject = kernel("parameter_reference", [](In<f32, 1> x, Out<f32, 1> y) {
#endif
  store(y, {0}, load(x, {0}, {8}));
});
