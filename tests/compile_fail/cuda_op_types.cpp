// expect: tessera: the function of a cuda_op takes one to four numbers of one element type, such as float, int or bf16,
// and returns one of that type
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("cuda_op_types", [](In<f32, 2> x) {
#ifndef GOOD
  const auto half = cuda_op("half", "a / 2", [](float a) { return a / 2.0; });
#else
  const auto half = cuda_op("half", "a / 2", [](float a) { return a / 2; });
#endif
});
