// expect: a tensor has 1 to 6 axes
#include <tessera/tessera.hpp>

using namespace tessera;

#ifndef GOOD
Tensor<bf16, 0> subject;
#else
Tensor<bf16, 1> subject;
#endif
