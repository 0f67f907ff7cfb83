// expect: tessera: a condition is computed in the kernel, from extents, scalars or tiles; for a value known
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("require_bool", [](In<i32, 1> n) {
#ifndef GOOD
  require(true, "fine");
#else
  require(n.extent(0) > 0, "elements");
#endif
});
