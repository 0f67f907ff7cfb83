#include "codegen/schedule/split_k.hpp"

#include <vector>

namespace tessera::internal {

SplitKLoop::SplitKLoop(const Graph& graph) {
  Id matmul = no_id;
  for (Id id = 0; id < graph.nodes.size(); ++id) {
    if (graph[id].op != Op::mma) continue;
    if (matmul != no_id) return;
    matmul = id;
  }
  if (matmul == no_id || !has_wgmma(graph[graph[matmul].in[0]].type)) return;
  const Node& left = graph[graph[matmul].in[0]];
  for (Id id = 0; id < graph.nodes.size(); ++id) {
    const Node& loop = graph[id];
    if (loop.op != Op::loop || loop.region != 0 || loop.body() != graph[matmul].region) continue;
    if (!graph[loop.in[0]].uniform) continue;
    count_ = UniformProgram(graph, std::span(&loop.in[0], 1));
    extents_ = {graph[matmul].shape[0], graph[matmul].shape[1], left.shape[1] * info(left.type).bytes / 2};
  }
}

std::int64_t SplitKLoop::of(std::span<const Argument> arguments) const {
  if (count_.size() == 0) return 0;
  constexpr std::size_t few = 16;
  Cell fixed[few];
  std::vector<Cell> many(count_.size() > few ? count_.size() : 0);
  const std::span<Cell> values = many.empty() ? std::span<Cell>(fixed) : std::span<Cell>(many);
  count_.run(arguments, values);
  return values[static_cast<std::size_t>(count_.position(0))].i32;
}

}  // namespace tessera::internal
