// expect: tessera: if_, else_ and while_ take their body as a lambda: [&] { ... }
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("while_no_lambda", [](In<f32, 2> x) {
  Var n = constant<i32>(0);
#ifndef GOOD
  while_([&] { return n < x.extent(0); }, n += 1);
#else
  while_([&] { return n < x.extent(0); }, [&] { n += 1; });
#endif
});
