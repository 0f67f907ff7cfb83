// expect: tessera: print takes tiles and scalars of the kernel; format C++ values into the text
#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("print_number", [](In<i32, 1> x) {
  Tile xs = load(x, {0}, {8});
#ifndef GOOD
  print("{} {}", xs, 8);
#else
  print("{} 8", xs);
#endif
});
