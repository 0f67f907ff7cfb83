// expect: tensors hold f32, f16, bf16, i32, i64 or u8
#include "api/tessera.hpp"

using namespace tessera;

#ifndef GOOD
auto subject = kernel("in_tf32", [](In<tf32, 1>) {});
#else
auto subject = kernel("in_tf32", [](In<f32, 1>) {});
#endif
