// Which CTAs of a launch share the k-iterations of a matmul, so that no multiprocessor is idle.
#pragma once
#include <cstdint>
#include <span>

#include "codegen/schedule/clusters.hpp"
#include "codegen/target/variant.hpp"

namespace tessera::internal {

/// Policy for a launch: the fastest way, or one way wherever it is possible.
enum class SplitKPolicy : std::uint8_t { automatic, none, cluster, stream_k };

/// How a launch divides k-iterations.
struct SplitKLaunch {
  SplitK split_k = SplitK::none;
  int blocks = 1;         ///< CTAs: of a cluster, or with stream-K of the launch
  int lockstep_rows = 1;  ///< stream-K: tiles that as many CTAs walk through together
};

/// Chooses for a matmul on a GPU with `multiprocessors`, each of which runs one CTA at a time.
SplitKLaunch split_k_of_launch(const MmaExtents& extents, std::span<const std::int64_t> grid, std::int64_t k_iterations,
                               int multiprocessors, SplitKPolicy policy = SplitKPolicy::automatic);

/// The same with at most `most` CTAs; below two there is no split-K.
inline SplitKLaunch limited(const SplitKLaunch& launch, int most) {
  if (most < 2) return {};
  return {launch.split_k, launch.blocks < most ? launch.blocks : most, launch.lockstep_rows};
}

/// On an H200: cycles of an epilogue per accumulator of a thread, and between the loops of two consumer groups in
/// ping-pong.
inline constexpr double cycles_of_sum = 22, cycles_of_wait = 745;

/// Cycles of a CTA of a stream-K launch, with `of_k_iteration` cycles for a k-iteration and `of_epilogue` for an
/// epilogue.
double cycles_of_stream_k(const MmaExtents& extents, const SplitKLaunch& launch, std::int64_t tiles,
                          std::int64_t k_iterations, double of_k_iteration, double of_epilogue);

/// Threads of a consumer group that has a whole tile's accumulators.
inline int threads_of_consumer_group(const MmaExtents& extents) { return extents.m % 128 ? 128 : 256; }

}  // namespace tessera::internal
