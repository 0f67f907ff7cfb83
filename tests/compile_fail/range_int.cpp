// expect: tessera: a loop in the kernel counts with a value of the kernel: for (Index i : range(n))
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("range_int", []() {
#ifndef GOOD
  for (int i : range(2)) (void)i;
#else
  for (Index i : range(2)) (void)i;
#endif
});
