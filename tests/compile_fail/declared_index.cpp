// expect: conversion from
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("declared_index", [](In<i32, 1> n) {
  Tile i = load(n, {0}, {8});
#ifndef GOOD
  Index first = i;
#else
  Index first = item(load(n, {0}, {1}));
#endif
});
