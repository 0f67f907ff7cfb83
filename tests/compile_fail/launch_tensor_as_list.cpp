// expect: tessera: a List parameter takes a std::vector of tensors
#include <vector>

#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("launch_tensor_as_list", [](List<In<f32, 1>, 4>, Out<f32, 1>) {});

void start(const Stream& stream, const Tensor<f32, 1>& x, const std::vector<Tensor<f32, 1>>& xs,
           [[maybe_unused]] const std::vector<Tensor<bf16, 1>>& others) {
#ifndef GOOD
  launch(stream, subject, x, x);
#else
  launch(stream, subject, xs, x);
#endif
}
