// expect: tensors hold f32, f64, f16, bf16, f8e4m3, f8e5m2 and integers, i8 to i64 and u8 to u64
#include <tessera/tessera.hpp>

using namespace tessera;

#ifndef GOOD
auto subject = kernel("in_tf32", [](In<tf32, 1>) {});
#else
auto subject = kernel("in_tf32", [](In<f32, 1>) {});
#endif
