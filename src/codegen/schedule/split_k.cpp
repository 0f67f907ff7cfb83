#include "codegen/schedule/split_k.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera::internal {
namespace {

// In cycles of a multiprocessor of an H200, from 31 measured launches. The cost of accumulators is estimated: with it,
// launches of few CTAs take what the model says, and those on all multiprocessors longer by the constants below.
constexpr double bytes_put = 32, bytes_added = 40;  // per cycle, of accumulators on their way to the L2 cache and back
constexpr double telling = 1500;                    // until another CTA knows that they are there
constexpr double of_one_consumer_group = 1.13, beside_others = 3500;
constexpr double l2_bytes = 24e6;                // of operands that are there for all CTAs, whenever they read them
constexpr double gain = 0.97;                    // largest fraction of the time without split-K
constexpr std::int64_t fewest_k_iterations = 8;  // of a CTA
constexpr std::int64_t group = 8;                // rows of tiles that run together (Schedule::raster_group)

double ceiling(double a, double b) { return std::ceil(a / b - 1e-9); }

std::int64_t columns_of(std::int64_t tiles, int lockstep_rows) { return (tiles + lockstep_rows - 1) / lockstep_rows; }

// Without split-K: one consumer group, or two in ping-pong, one of which multiplies while the other stores.
double cycles_alone(const MmaExtents& extents, std::int64_t tiles, double k_iterations, int multiprocessors) {
  const double waves = ceiling(static_cast<double>(tiles), multiprocessors),
               loop = k_iterations * cycles_of_k_iteration(extents);
  const bool one_consumer_group = extents.m > 128 || extents.m * extents.n > 128 * 192;
  const double epilogue = 1.0 * extents.m * extents.n / (one_consumer_group ? 256 : 128) * cycles_of_sum;
  if (one_consumer_group) return waves * (loop + epilogue);
  return waves * std::max(loop + cycles_of_wait, (loop + epilogue) / 2) + epilogue;
}

}  // namespace

double cycles_of_stream_k(const MmaExtents& extents, const SplitKLaunch& launch, std::int64_t tiles,
                          std::int64_t k_iterations, double of_k_iteration, double of_epilogue) {
  const double bytes = 4.0 * extents.m * extents.n;
  const double of_tile = static_cast<double>(k_iterations),
               of_block = static_cast<double>(columns_of(tiles, launch.lockstep_rows)) * of_tile /
                          static_cast<double>(launch.blocks / launch.lockstep_rows);
  const double others = std::max(ceiling(of_tile, of_block), 1.0), stored = std::max(ceiling(of_block, of_tile), 1.0);
  return of_one_consumer_group * of_block * of_k_iteration + beside_others + stored * of_epilogue + bytes / bytes_put +
         others * (telling + bytes / bytes_added);
}

SplitKLaunch split_k_of_launch(const MmaExtents& extents, std::span<const std::int64_t> grid, std::int64_t k_iterations,
                               int multiprocessors, SplitKPolicy policy) {
  std::int64_t tiles = 1;
  for (const std::int64_t extent : grid) tiles *= extent;
  if (policy == SplitKPolicy::none || k_iterations < 1 || tiles < 1) return {};
  const bool any = policy == SplitKPolicy::automatic;
  if ((any || policy == SplitKPolicy::cluster) && 2 * tiles <= multiprocessors)
    if (const int blocks = blocks_of_cluster(extents, tiles, k_iterations, multiprocessors); blocks > 1)
      return {SplitK::cluster, blocks, 1};
  if (policy == SplitKPolicy::cluster) return {};
  // CTAs of a column of tiles read the same columns of the right operand at the same time, so these are read from
  // memory once. If all operands fit in the L2 cache, they need not.
  const std::int64_t rows = grid.size() >= 2 ? grid[0] : 1;
  const double bytes = 2.0 * extents.k * static_cast<double>(k_iterations) *
                       (static_cast<double>(rows) * extents.m + static_cast<double>(tiles / rows) * extents.n);
  SplitKLaunch launch{.split_k = SplitK::stream_k, .blocks = 0, .lockstep_rows = 1};
  if (bytes > l2_bytes) launch.lockstep_rows = static_cast<int>(std::min(rows, group));
  const std::int64_t columns = columns_of(tiles, launch.lockstep_rows);
  if (columns > std::numeric_limits<std::int32_t>::max() / multiprocessors / k_iterations)
    return {};  // they count in 32 bits
  const std::int64_t parts =
      std::min<std::int64_t>(multiprocessors / launch.lockstep_rows, columns * k_iterations / fewest_k_iterations);
  launch.blocks = static_cast<int>(parts) * launch.lockstep_rows;
  if (parts < 2 || k_iterations < fewest_k_iterations) return {};
  const double of_epilogue = 1.0 * extents.m * extents.n / threads_of_consumer_group(extents) * cycles_of_sum;
  const double shared =
      cycles_of_stream_k(extents, launch, tiles, k_iterations, cycles_of_k_iteration(extents), of_epilogue);
  const double alone = cycles_alone(extents, tiles, static_cast<double>(k_iterations), multiprocessors);
  return policy == SplitKPolicy::stream_k || shared < gain * alone ? launch : SplitKLaunch{};
}

}  // namespace tessera::internal
