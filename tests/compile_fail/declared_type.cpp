// expect: conversion from
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("declared_type", [](In<i32, 1> n) {
  Tile i = load(n, {0}, {8});
#ifndef GOOD
  Tile<f32, 1> f = i;
#else
  Tile<f32, 1> f = cast<f32>(i);
#endif
});
