// expect: tessera: scatter takes named Tiles of i32, or of i64, of one rank as indices: Tile i = ...; scatter(y, {i,
// j}, x)
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("scatter_unnamed_indices", [](In<f32, 1> x, Out<f32, 1> y) {
  Tile f = load(x, {0}, {8});
  Tile i = iota({8}, 0);
#ifndef GOOD
  scatter(y, {i + 1}, f);
#else
  Tile next = i + 1;
  scatter(y, {next}, f);
#endif
});
