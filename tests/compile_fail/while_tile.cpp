// expect: the condition of while_ is a lambda, as in while_([&] { return i < n; }, ...)
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("while_tile", [](Out<i32, 1> y, Scalar<i32> n) {
  Var i = constant<i32>(0);
#ifndef GOOD
  while_(i < n, [&] { i += 1; });
#else
  while_([&] { return i < n; }, [&] { i += 1; });
#endif
  store(y, {0}, reshape(i, {1}));
});
