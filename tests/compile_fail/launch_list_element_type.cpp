// expect: the tensor's element type is not the parameter's; which argument: see `argument = N` above
#include <vector>

#include <tessera/tessera.hpp>

using namespace tessera;

auto subject = kernel("launch_list_element_type", [](List<In<f32, 1>, 4>, Out<f32, 1>) {});

void start(const Stream& stream, const Tensor<f32, 1>& x, const std::vector<Tensor<f32, 1>>& xs,
           [[maybe_unused]] const std::vector<Tensor<bf16, 1>>& others) {
#ifndef GOOD
  launch(stream, subject, others, x);
#else
  launch(stream, subject, xs, x);
#endif
}
