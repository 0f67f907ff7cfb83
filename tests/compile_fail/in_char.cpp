// expect: tensors hold f32, f64, f16, bf16, f8e4m3, f8e5m2 and integers, i8 to i64 and u8 to u64
#include <tessera/tessera.hpp>

using namespace tessera;

#ifndef GOOD
auto subject = kernel("in_char", [](In<char, 1> x, Out<f32, 1> y) { store(y, {0}, full<f32>({4}, 1)); });
#else
auto subject = kernel("in_char", [](In<f32, 1>, Out<f32, 1> y) { store(y, {0}, full<f32>({4}, 1)); });
#endif
