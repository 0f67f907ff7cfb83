// expect: tessera: if_, else_ and while_ return no value: let the lambda assign to a Var
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("while_returns", [](In<f32, 2> x) {
  Var n = constant<i32>(0);
#ifndef GOOD
  while_([&] { return n < x.extent(0); }, [&] { return n + 1; });
#else
  while_([&] { return n < x.extent(0); }, [&] { n += 1; });
#endif
});
