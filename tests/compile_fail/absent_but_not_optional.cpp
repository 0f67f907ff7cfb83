// expect: tessera: only an Optional parameter may be left out
#include <tessera/tessera.hpp>

using namespace tessera;

void subject(const Device& device) {
  auto k = kernel("absent_but_not_optional", [](In<f32, 1> x, Out<f32, 1> y) { store(y, {0}, load(x, {0}, {8})); });
  Tensor<f32, 1> x(device, {8}), y(device, {8});
#ifndef GOOD
  launch(device.stream(), k, std::nullopt, y);
#else
  launch(device.stream(), k, x, y);
#endif
}
