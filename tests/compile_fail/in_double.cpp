// expect: tensors hold f32, f16, bf16 and integers, i8 to i64 and u8 to u64
#include "api/tessera.hpp"

using namespace tessera;

#ifndef GOOD
auto subject = kernel("in_double", [](In<double, 1> x, Out<f32, 1> y) { store(y, {0}, full<f32>({4}, 1)); });
#else
auto subject = kernel("in_double", [](In<f32, 1>, Out<f32, 1> y) { store(y, {0}, full<f32>({4}, 1)); });
#endif
