// expect: tessera: the function of a cuda_op takes one to three floats and returns a float, or takes ints and returns an int
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("cuda_op_types", [](In<f32, 2> x) {
#ifndef GOOD
  const auto half = cuda_op("half", "a / 2", [](float a) { return a / 2.0; });
#else
  const auto half = cuda_op("half", "a / 2", [](float a) { return a / 2; });
#endif
});
