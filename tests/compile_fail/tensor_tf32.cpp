// expect: tessera: the element types of tensors are f32 f64 f16
#include <tessera/tessera.hpp>

using namespace tessera;

#ifndef GOOD
Tensor<tf32, 1> subject;
#else
Tensor<pred, 1> subject;
#endif
