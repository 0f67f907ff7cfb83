// Clusters of sm_90: CTAs that share the k-iterations of a matmul, where the grid alone has too few CTAs for the GPU.
#pragma once
#include <cstdint>
#include <span>

#include "graph/evaluate.hpp"

namespace tessera::internal {

/// The extents of a matmul's k-iteration: [m,k] times [k,n], of 16-bit elements. tf32 has twice as many bytes and half
/// the rate, so its k counts twice.
struct MmaExtents {
  int m = 0, n = 0, k = 0;
};

/// The k-iterations of a kernel that the CTAs of a cluster may share: those of the loop around its only matmul.
class SplitKLoop {
 public:
  SplitKLoop() = default;
  explicit SplitKLoop(const Graph& graph);
  /// The k-iterations of a launch with these arguments; 0: the kernel has no such loop.
  std::int64_t of(std::span<const Argument> arguments) const;
  const MmaExtents& extents() const { return extents_; }

 private:
  MmaExtents extents_;
  UniformProgram count_;
};

/// Cycles of a multiprocessor for one k-iteration.
double cycles_of_k_iteration(const MmaExtents& extents);

/// The CTAs for each of `blocks` grid tiles that cost the least, on a GPU with `multiprocessors`.
int blocks_of_cluster(const MmaExtents& extents, std::int64_t blocks, std::int64_t k_iterations, int multiprocessors);

/// Cycles that a cluster of `cluster` CTAs costs beside its k-iterations: for two cluster barriers, and for the first
/// CTA to read the accumulators of the others.
double cycles_of_cluster(const MmaExtents& extents, int cluster);

/// The size that every GPU with clusters supports (CUDA C++ Programming Guide, "Thread Block Clusters").
inline constexpr int most_blocks_of_cluster = 8;

}  // namespace tessera::internal
