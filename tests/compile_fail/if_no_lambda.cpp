// expect: tessera: if_, else_ and while_ take their body as a lambda: [&] { ... }
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("if_no_lambda", [](In<f32, 2> x) {
  Var n = constant<i32>(0);
#ifndef GOOD
  if_(x.extent(0) > 8, n += 1);
#else
  if_(x.extent(0) > 8, [&] { n += 1; });
#endif
});
