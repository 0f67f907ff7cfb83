// expect: an extent or a count is an integer or an Index
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("range_double", []() {
#ifndef GOOD
  for (Index i : range(2.5)) Tile next = i + 1;
#else
  for (Index i : range(2)) Tile next = i + 1;
#endif
});
