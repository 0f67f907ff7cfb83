// expect: require takes a comparison of rank 0
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("require_i32", [](In<i32, 1> n) {
#ifndef GOOD
  require(n.extent(0), "elements");
#else
  require(n.extent(0) > 0, "elements");
#endif
});
