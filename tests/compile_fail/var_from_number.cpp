// expect: a number alone has no element type; write constant<f32>(x)
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("var_from_number", []() {
#ifndef GOOD
  Var total = 0.0f;
#else
  Var total = constant<f32>(0.0f);
#endif
});
