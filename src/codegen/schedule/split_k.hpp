// Which blocks of threads of a launch share the rounds of a product, so that no multiprocessor is idle.
#pragma once
#include <cstdint>
#include <span>

#include "codegen/schedule/clusters.hpp"
#include "codegen/target/variant.hpp"

namespace tessera::internal {

/// What a launch may do: what is the fastest, or one way wherever it is possible.
enum class SplitKPolicy : std::uint8_t { automatic, none, cluster, stream_k };

/// How a launch shares rounds.
struct SplitKLaunch {
  SplitK split_k = SplitK::none;
  int blocks = 1;         ///< of threads: of a cluster, or of the launch where the grid shares
  int lockstep_rows = 1;  ///< tiles that as many blocks walk through together, where the grid shares
};

/// Of a product on a GPU of so many multiprocessors, of which each has one block of threads at a time.
SplitKLaunch split_k_of_launch(const MmaExtents& extents, std::span<const std::int64_t> grid, std::int64_t k_iterations,
                               int multiprocessors, SplitKPolicy policy = SplitKPolicy::automatic);

/// The same by clusters of so many blocks at most; of one it is none.
inline SplitKLaunch limited(const SplitKLaunch& launch, int most) {
  if (most < 2) return {};
  return {launch.split_k, launch.blocks < most ? launch.blocks : most, launch.lockstep_rows};
}

/// Of an H200: cycles of an epilogue for each sum of a thread, and between the loops of two teams that take turns.
inline constexpr double cycles_of_sum = 22, cycles_of_wait = 745;

/// Cycles of a block of such a launch, where the grid shares rounds of so many cycles, and an epilogue takes so many.
double cycles_of_stream_k(const MmaExtents& extents, const SplitKLaunch& launch, std::int64_t tiles,
                          std::int64_t k_iterations, double of_k_iteration, double of_epilogue);

/// Threads that have the sums of a tile between them, where one team does.
inline int threads_of_consumer_group(const MmaExtents& extents) { return extents.m % 128 ? 128 : 256; }

}  // namespace tessera::internal
