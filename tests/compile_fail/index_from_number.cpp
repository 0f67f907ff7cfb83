// expect: or constant<i32>(n) for an Index
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("index_from_number", []() {
#ifndef GOOD
  Index zero = 0;
#else
  Index zero = constant<i32>(0);
#endif
});
