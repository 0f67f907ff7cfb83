#include "codegen/hand_written.hpp"

#include <fmt/format.h>

#include "graph/in_literal.hpp"
#include "tessera/graph/cuda_text.hpp"

namespace tessera::internal {

KernelSource hand_written(const Graph& graph) {
  const CudaText& text = *graph.cuda;
  KernelSource source;
  source.author = source.name = graph.name;
  source.by_hand = true;
  source.plan = fmt::format("kernel {} in CUDA C++, by hand\n", graph.name);
  using Kind = KernelParameter::Kind;
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    const bool scalar = graph.parameters[i].access == Access::scalar;
    source.parameters.push_back({scalar ? Kind::scalar : Kind::pointer, static_cast<int>(i), 0});
    source.plan += fmt::format("parameter {}: {}\n", i, to_string(graph.parameters[i]));
  }
  for (std::size_t i = CudaText::first_number; i < graph.grid.size(); ++i)
    source.parameters.push_back({Kind::grid, 0, static_cast<int>(i)});
  source.plan += fmt::format("{} numbers of the launch\n", graph.grid.size() - CudaText::first_number);
  source.text = fmt::format("// kernel {} in CUDA C++, by hand\n#line {} \"{}\"\n{}", graph.name, text.location.line,
                            in_literal(text.location.file), text.source);
  return source;
}

}  // namespace tessera::internal
