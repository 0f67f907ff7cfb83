#include "codegen/schedule/clusters.hpp"

#include <algorithm>
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

// Measured on an H200 with k-iterations of [64,64] by [64,64], and of [64,128] by [128,64], in clusters of 1 to 8.
double cycles_of_cluster(const MmaExtents& extents, int cluster) {
  constexpr double meeting = 2400, bytes_a_cycle = 27;
  return cluster == 1 ? 0 : meeting + (cluster - 1) * 4.0 * extents.m * extents.n / bytes_a_cycle;
}

double cycles_of_k_iteration(const MmaExtents& extents) {
  constexpr double bytes_a_cycle = 57, macs_a_cycle = 2048;
  return std::max(2.0 * (extents.m + extents.n) * extents.k / bytes_a_cycle,
                  1.0 * extents.m * extents.n * extents.k / macs_a_cycle);
}

int blocks_of_cluster(const MmaExtents& extents, std::int64_t blocks, std::int64_t k_iterations, int multiprocessors) {
  const double of_k_iteration = cycles_of_k_iteration(extents);
  const std::int64_t free = multiprocessors / std::max<std::int64_t>(blocks, 1);
  // Beside more accumulators shared memory holds too few stages; and with 128 accumulators the threads of one warp
  // group have no registers left for what a cluster takes.
  const bool fits = extents.m * extents.n <= 128 * 128 && (extents.m % 128 == 0 || extents.m * extents.n < 128 * 128);
  const int most =
      fits ? static_cast<int>(std::clamp<std::int64_t>(std::min(free, k_iterations), 1, most_blocks_of_cluster)) : 1;
  int best = 1;
  double least = static_cast<double>(k_iterations) * of_k_iteration;
  for (int cluster = 2; cluster <= most; ++cluster) {
    const double cycles = static_cast<double>((k_iterations + cluster - 1) / cluster) * of_k_iteration +
                          cycles_of_cluster(extents, cluster);
    if (cycles < least) {
      least = cycles;
      best = cluster;
    }
  }
  return best;
}

}  // namespace tessera::internal
