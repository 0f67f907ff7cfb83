// expect: tessera: store takes a tile, whose shape sets how much is written: full<f32>({..}, x), or zeros<f32>({..})
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("store_number", [](Out<f32, 1> y) {
#ifndef GOOD
  store(y, {0}, 1.0f);
#else
  store(y, {0}, full<f32>({8}, 1.0f));
#endif
});
