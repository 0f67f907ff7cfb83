// expect: if_ and while_ take a condition of rank 0, as item(any(x)) is
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("while_rank", [](In<i32, 1> x, Out<i32, 1> y) {
  Var i = load(x, {0}, {8});
#ifndef GOOD
  while_([&] { return i < 9; }, [&] { i += 1; });
#else
  while_([&] { return item(max(i, axis(0))) < 9; }, [&] { i += 1; });
#endif
  store(y, {0}, i);
});
