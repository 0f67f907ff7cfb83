// expect: tessera: the tensor's element type is not the parameter's
#include <tessera/tessera.hpp>

using namespace tessera;

void subject(const Device& device) {
  auto k = kernel("optional_of_another_type",
                  [](Optional<In<f32, 1>> x, Out<f32, 1> y) { store(y, {0}, load(x, {0}, {8})); });
  Tensor<f32, 1> x(device, {8}), y(device, {8});
#ifndef GOOD
  launch(device.stream(), k, std::optional(Tensor<i32, 1>(device, {8})), y);
#else
  launch(device.stream(), k, std::optional(x), y);
#endif
}
