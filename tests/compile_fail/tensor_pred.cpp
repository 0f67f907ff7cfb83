// expect: tessera: tensors hold f32
#include <tessera/tessera.hpp>

using namespace tessera;

#ifndef GOOD
Tensor<pred, 1> subject;
#else
Tensor<u8, 1> subject;
#endif
