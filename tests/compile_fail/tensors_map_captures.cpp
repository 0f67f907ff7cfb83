// expect: the function given to map may not capture anything
#include <tessera/tensors.hpp>

using namespace tessera;

auto subject(Lazy<f32, 2> x, float a) {
#ifndef GOOD
  return x.map([=](auto e) { return e * a; });
#else
  return x.map([](auto e) { return e * 2; });
#endif
}
