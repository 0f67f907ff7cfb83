// expect: tessera: tensors hold f32
#include <tessera/tessera.hpp>

using namespace tessera;

#ifndef GOOD
Tensor<char, 1> subject;
#else
Tensor<f32, 1> subject;
#endif
