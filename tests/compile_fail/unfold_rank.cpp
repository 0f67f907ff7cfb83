// expect: a view has at most 6 axes, and unfold makes one more
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("unfold_rank", [](In<f32, 6> x) {
#ifndef GOOD
  auto windows = x.unfold(0, 4, 4);
#else
  auto rows = x.flatten(0).unfold(0, 4, 4);
#endif
});
