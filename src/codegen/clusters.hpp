// Clusters of sm_90: blocks of threads that share the rounds of a product's loop, where a grid alone has too few blocks
// for the GPU.
#pragma once
#include <cstdint>
#include <span>

#include "graph/evaluate.hpp"

namespace tessera {

/// The rounds of a kernel that the blocks of a cluster may share: those of the loop around its only product.
class SharedRounds {
 public:
  SharedRounds() = default;
  explicit SharedRounds(const Graph& graph);
  /// Of a launch with these arguments; 0: the kernel has no such loop.
  std::int64_t of(std::span<const Argument> arguments) const;

 private:
  UniformProgram count_;
};

/// How many blocks each of the grid's should be shared by, on a GPU of so many multiprocessors.
int blocks_of_cluster(std::int64_t blocks, std::int64_t rounds, int multiprocessors);

/// What every GPU that has clusters takes (CUDA C++ Programming Guide, "Thread Block Clusters").
inline constexpr int most_blocks_of_cluster = 8;

}  // namespace tessera
