// expect: flatten merges two axes, and a view of rank 1 has only one
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("flatten_rank", [](In<f32, 1> x) {
#ifndef GOOD
  auto flat = x.flatten(0);
#else
  auto flat = x.unflatten(0, 4).slice(0, 1, 2);
#endif
});
