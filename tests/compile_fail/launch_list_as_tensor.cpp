// expect: tessera: an In, Out or InOut parameter takes a Tensor
#include <vector>

#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("launch_list_as_tensor", [](List<In<f32, 1>, 4>, Out<f32, 1>) {});

void start(const Stream& stream, const Tensor<f32, 1>& x, const std::vector<Tensor<f32, 1>>& xs,
           [[maybe_unused]] const std::vector<Tensor<bf16, 1>>& others) {
#ifndef GOOD
  launch(stream, subject, xs, xs);
#else
  launch(stream, subject, xs, x);
#endif
}
