// expect: an extent or a count is an integer or an Index
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("blocks_double", [](In<f32, 1> x) {
#ifndef GOOD
  Index i = blocks(1.5);
#else
  Index i = blocks(2);
#endif
});
