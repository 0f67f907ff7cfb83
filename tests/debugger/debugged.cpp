// The program of the debugger tests. A debugger stops in the two functions below and prints variables of their callers. On stdout are the
// texts that it must print for graphs and layouts.
#include <cstdio>
#include <cstring>

#include <tessera/tessera.hpp>
#include "codegen/make_plan.hpp"

using namespace tessera;
using namespace tessera::internal;

void in_kernel() {}
void at_end() {}

namespace {

/// Memory that holds no object.
template <class T>
const T& garbage() {
  alignas(T) static unsigned char memory[sizeof(T)];
  std::memset(memory, 0xa5, sizeof memory);
  return reinterpret_cast<const T&>(memory);
}
template <class T>
const T& nowhere() {
  return *reinterpret_cast<const T*>(16);
}

auto row_sums() {
  return kernel("row_sums", [](In<f32, 2> x, Out<f32, 2> y) {
    Index row = blocks(x.extent(0));
    Var total = zeros<f32>({1, 1});
    for (Index part : range(cdiv(x.extent(1), 64))) {
      Tile xs = load(x, {row, part}, {1, 64});
      auto square = xs * xs + 0.5;
      Tile sums = sum(square, 1);
      total += sums;
      in_kernel();
    }
    store(y, {row, 0}, total);
  });
}

auto branches() {
  return kernel("branches", [](In<f32, 1> x, InOut<i32, 1> counts, List<In<f64, 1>, 3> more, Scalar<f32> least, Out<f32, 1> y) {
    require(x.extent(0) >= 64, "64 elements or \"more\"");
    Index i = blocks(cdiv(x.extent(0), 64));
    Tile xs = load(x, {i}, {64}, -inf);
    Tile far = load(more[1], {i}, {64}, 1e-3);
    Var kept = sort(xs, 0);
    if_(i > 2, [&] {
      kept = cumsum(xs * 0.1, 0);
      if_(least < 1e20, [&] { kept += cast<f32>(far); });
    });
    atomic_add(counts, {i}, cast<i32>(xs > least));
    print("{}", sum(kept, 0));
    store(y, {i}, kept);
  });
}

}  // namespace

int main() {
  const auto sums = row_sums();
  const Graph graph = sums.graph(), branching = branches().graph();
  const decltype(row_sums()) no_kernel;
  const Node node = graph.nodes.back();
  const Shape shape = {4, 8};
  const codegen::Plan plan = codegen::make_plan(sums.executable().graph(), dense_variant(graph), Arch::sm_90a, {});
  const codegen::Step& step = plan.phases[0].roles[0].body[0];
  const codegen::Compute* compute = step.action.as<codegen::Compute>();
  const codegen::Layout layout = plan.values[codegen::ValueId{6}].layout;
  std::printf("%s%s%s\n", to_string(graph, true).c_str(), to_string(branching, true).c_str(), to_string(layout).c_str());

  const Device device = Device::cpu();
  const auto x = Tensor<f32, 2>::of(device, {{0.1f, 2, 3}, {4, 5, 6}});
  const auto turned = x.transposed();
  const auto halves = Tensor<f16, 1>::of(device, {1.5, -2, 65504, 1, 2, 3, 4, 5, 6, 7});
  const auto bytes = Tensor<f8e4m3, 1>::of(device, {448, -0.001953125, 1.125});
  const auto wide = Tensor<f8e5m2, 1>::of(device, {57344, -1.75, 0.0000152587890625});
  const auto brains = Tensor<bf16, 1>::of(device, {0.1, 3});
  const auto truths = Tensor<pred, 1>::of(device, {true, false});
  const Tensor<i64, 3> empty;

  const auto& no_tile = garbage<Tile<f32, 2>>();
  const auto& no_var = garbage<Var<f32, 2>>();
  const auto& no_tensor = garbage<Tensor<f32, 2>>();
  const auto& no_graph = garbage<Graph>();
  const auto& no_node = garbage<Node>();
  const auto& no_shape = garbage<Shape>();
  const auto& no_location = garbage<Location>();
  const auto& no_plan = garbage<codegen::Plan>();
  const auto& no_step = garbage<codegen::Step>();
  const auto& no_layout = garbage<codegen::Layout>();
  const auto& nowhere_graph = nowhere<Graph>();
  const auto& nowhere_plan = nowhere<codegen::Plan>();
  at_end();
  return node.shape.rank() == shape.rank() + 100 && compute;
}
