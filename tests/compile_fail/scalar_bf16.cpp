// expect: a scalar parameter is f32, f64, i32, i64, u32 or u64
#include <tessera/tessera.hpp>

using namespace tessera;

#ifndef GOOD
auto subject = kernel("scalar_bf16", [](Scalar<bf16>) {});
#else
auto subject = kernel("scalar_bf16", [](Scalar<f32>) {});
#endif
