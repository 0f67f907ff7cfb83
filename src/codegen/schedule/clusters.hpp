// Clusters of sm_90: blocks of threads that share the rounds of a product's loop, where a grid alone has too few blocks
// for the GPU.
#pragma once
#include <cstdint>
#include <span>

#include "graph/evaluate.hpp"

namespace tessera::internal {

/// What a product adds up in a round: [m,k] times [k,n], of 16 bits. Of tf32, which has twice as many bytes and half of
/// the rate, k counts as 2 k.
struct MmaExtents {
  int m = 0, n = 0, k = 0;
};

/// The rounds of a kernel that the blocks of a cluster may share: those of the loop around its only product.
class SplitKLoop {
 public:
  SplitKLoop() = default;
  explicit SplitKLoop(const Graph& graph);
  /// Of a launch with these arguments; 0: the kernel has no such loop.
  std::int64_t of(std::span<const Argument> arguments) const;
  const MmaExtents& extents() const { return extents_; }

 private:
  MmaExtents extents_;
  UniformProgram count_;
};

/// Cycles that such a round takes a multiprocessor.
double cycles_of_k_iteration(const MmaExtents& extents);

/// By how many blocks each of the grid's is shared at the least cost, on a GPU of so many multiprocessors.
int blocks_of_cluster(const MmaExtents& extents, std::int64_t blocks, std::int64_t k_iterations, int multiprocessors);

/// Cycles that a cluster of so many blocks costs beside its rounds: it meets twice, and the first block reads the sums
/// of the others.
double cycles_of_cluster(const MmaExtents& extents, int cluster);

/// What every GPU that has clusters takes (CUDA C++ Programming Guide, "Thread Block Clusters").
inline constexpr int most_blocks_of_cluster = 8;

}  // namespace tessera::internal
