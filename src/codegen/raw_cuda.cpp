#include "codegen/raw_cuda.hpp"

#include <fmt/format.h>

#include <optional>

#include "codegen/emit/emit_functions.hpp"
#include "graph/in_literal.hpp"
#include "tessera/graph/cuda_text.hpp"

namespace tessera::internal {
namespace {

/// A number of the launch, if all launches have the same.
std::optional<int> constant_of_launch(const Graph& graph, std::size_t number) {
  const Node& node = graph[graph.grid[number]];
  return node.op == Op::constant ? std::optional<int>(node.number().i32) : std::nullopt;
}

}  // namespace

KernelSource functions_alone(const Graph& graph) {
  KernelSource source;
  source.author = graph.name;
  source.name = "functions_alone";
  source.by_hand = true;
  for (const CustomFunction& function : graph.functions) source.text += function_text(function) + "\n";
  source.text += "extern \"C\" __global__ void functions_alone() {}\n";
  return source;
}

KernelSource raw_cuda(const Graph& graph) {
  const CudaText& text = *graph.cuda;
  KernelSource source;
  source.author = source.name = graph.name;
  source.by_hand = true;
  source.threads = 1;
  for (std::size_t axis = 0; axis < CudaText::axes; ++axis)
    source.threads *= constant_of_launch(graph, CudaText::first_thread + axis).value_or(0);
  source.shared_bytes = constant_of_launch(graph, CudaText::shared_bytes).value_or(-1);
  source.plan = fmt::format("kernel {} in CUDA C++, by hand\n", graph.name);
  using Kind = KernelParameter::Kind;
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    const bool scalar = graph.parameters[i].access == Access::scalar;
    source.parameters.push_back({scalar ? Kind::scalar : Kind::pointer, static_cast<int>(i), 0});
    source.plan += fmt::format("parameter {}: {}\n", i + 1, to_string(graph.parameters[i]));
  }
  for (std::size_t i = CudaText::first_number; i < graph.grid.size(); ++i)
    source.parameters.push_back({Kind::grid, 0, static_cast<int>(i)});
  source.plan += fmt::format("{} numbers of the launch\n", graph.grid.size() - CudaText::first_number);
  source.text = fmt::format("// kernel {} in CUDA C++, by hand\n#line {} \"{}\"\n{}", graph.name, text.location.line,
                            in_literal(text.location.file), text.source);
  return source;
}

}  // namespace tessera::internal
