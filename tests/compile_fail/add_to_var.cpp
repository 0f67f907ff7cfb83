// expect: the Var has a different element type
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("add_to_var", [](In<f32, 1> x, In<bf16, 1> z) {
  Var total = load(x, {0}, {8});
#ifndef GOOD
  total += load(z, {0}, {8});
#else
  total += cast<f32>(load(z, {0}, {8}));
#endif
});
