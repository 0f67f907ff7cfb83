// expect: tessera: values are copied without conversion; convert values of another element type first
#include <tessera/tessera.hpp>

using namespace tessera;

void fill(const Tensor<bf16, 1>& x, const std::vector<f32>& wide, const std::vector<bf16>& narrow) {
#ifndef GOOD
  x.copy_from(wide);
#else
  x.copy_from(narrow);
#endif
}
