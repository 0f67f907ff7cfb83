// expect: tessera: the element types of tensors are f32 f64 f16
#include <tessera/tessera.hpp>

using namespace tessera;

#ifndef GOOD
auto subject = kernel("in_char", [](In<char, 1> x, Out<f32, 1> y) { store(y, {0}, full<f32>({4}, 1)); });
#else
auto subject = kernel("in_char", [](In<f32, 1>, Out<f32, 1> y) { store(y, {0}, full<f32>({4}, 1)); });
#endif
