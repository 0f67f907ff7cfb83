// expect: floor(a / b) and ceil(a / b) are integer quotients
#include <tessera/tessera.hpp>
using namespace tessera;

int main() {
  kernel("cdiv_f32", [](In<f32, 1> x, Out<f32, 1> y) {
    Tile f = load(x, {0}, {8});
#ifndef GOOD
    store(y, {0}, cdiv(f, 2));
#else
    store(y, {0}, f / 2);
#endif
  });
}
