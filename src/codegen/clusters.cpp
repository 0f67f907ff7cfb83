#include "codegen/clusters.hpp"

#include <algorithm>
#include <vector>

namespace tessera {

SharedRounds::SharedRounds(const Graph& graph) {
  Id product = no_id;
  for (Id id = 0; id < graph.nodes.size(); ++id) {
    if (graph[id].op != Op::mma) continue;
    if (product != no_id) return;
    product = id;
  }
  if (product == no_id) return;
  for (Id id = 0; id < graph.nodes.size(); ++id) {
    const Node& loop = graph[id];
    if (loop.op != Op::loop || loop.region != 0 || loop.body() != graph[product].region) continue;
    if (graph[loop.in[0]].uniform) count_ = UniformProgram(graph, std::span(&loop.in[0], 1));
  }
}

std::int64_t SharedRounds::of(std::span<const Argument> arguments) const {
  if (count_.size() == 0) return 0;
  constexpr std::size_t few = 16;
  Cell fixed[few];
  std::vector<Cell> many(count_.size() > few ? count_.size() : 0);
  const std::span<Cell> values = many.empty() ? std::span<Cell>(fixed) : std::span<Cell>(many);
  count_.run(arguments, values);
  return values[static_cast<std::size_t>(count_.position(0))].i32;
}

int blocks_of_cluster(std::int64_t blocks, std::int64_t rounds, int multiprocessors) {
  constexpr std::int64_t fewest_rounds = 2;  // of a block: below, it waits for memory once and has nothing to overlap
  const std::int64_t free = multiprocessors / std::max<std::int64_t>(blocks, 1);
  return static_cast<int>(std::clamp<std::int64_t>(std::min(free, rounds / fewest_rounds), 1, most_blocks_of_cluster));
}

}  // namespace tessera
