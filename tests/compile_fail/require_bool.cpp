// expect: tessera: a condition is computed in the kernel, of extents, scalars or tiles; what C++ knows
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("require_bool", [](In<i32, 1> n) {
#ifndef GOOD
  require(true, "fine");
#else
  require(n.extent(0) > 0, "elements");
#endif
});
