#include "codegen/schedule/split_k.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera::internal {
namespace {

// In cycles of a multiprocessor of an H200. What sums cost is estimated; with it launches of few blocks took what the
// model says, of 31 that were measured, and those of all multiprocessors so much longer.
constexpr double bytes_put = 32, bytes_added = 40;  // a cycle, of sums on their way to the L2 cache and back
constexpr double telling = 1500;                    // until another block knows that they are there
constexpr double of_one_consumer_group = 1.13, beside_others = 3500;
constexpr double l2_bytes = 24e6;          // of operands that are there for all blocks, whenever they read them
constexpr double gain = 0.97;              // of the time without, at most
constexpr std::int64_t fewest_rounds = 8;  // of a block
constexpr std::int64_t group = 8;          // rows of tiles whose blocks follow one another (Schedule::group)

double ceiling(double a, double b) { return std::ceil(a / b - 1e-9); }

std::int64_t columns_of(std::int64_t tiles, int lockstep_rows) { return (tiles + lockstep_rows - 1) / lockstep_rows; }

// Without sharing: a team, or two in turn, of which one multiplies while the other stores.
double cycles_alone(const RoundExtents& round, std::int64_t tiles, double rounds, int multiprocessors) {
  const double waves = ceiling(static_cast<double>(tiles), multiprocessors), loop = rounds * cycles_of_round(round);
  const bool one_consumer_group = round.m > 128 || round.m * round.n > 128 * 192;
  const double epilogue = 1.0 * round.m * round.n / (one_consumer_group ? 256 : 128) * cycles_of_sum;
  if (one_consumer_group) return waves * (loop + epilogue);
  return waves * std::max(loop + cycles_of_turn, (loop + epilogue) / 2) + epilogue;
}

}  // namespace

double cycles_by_grid(const RoundExtents& round, const SplitKLaunch& launch, std::int64_t tiles, std::int64_t rounds,
                      double of_round, double of_epilogue) {
  const double bytes = 4.0 * round.m * round.n;
  const double of_tile = static_cast<double>(rounds),
               of_block = static_cast<double>(columns_of(tiles, launch.lockstep_rows)) * of_tile /
                          static_cast<double>(launch.blocks / launch.lockstep_rows);
  const double others = std::max(ceiling(of_tile, of_block), 1.0), stored = std::max(ceiling(of_block, of_tile), 1.0);
  return of_one_consumer_group * of_block * of_round + beside_others + stored * of_epilogue + bytes / bytes_put +
         others * (telling + bytes / bytes_added);
}

SplitKLaunch split_k_of_launch(const RoundExtents& round, std::span<const std::int64_t> grid, std::int64_t rounds,
                               int multiprocessors, SplitKPolicy policy) {
  std::int64_t tiles = 1;
  for (const std::int64_t extent : grid) tiles *= extent;
  if (policy == SplitKPolicy::none || rounds < 1 || tiles < 1) return {};
  const bool any = policy == SplitKPolicy::automatic;
  if ((any || policy == SplitKPolicy::cluster) && 2 * tiles <= multiprocessors)
    if (const int blocks = blocks_of_cluster(round, tiles, rounds, multiprocessors); blocks > 1)
      return {SplitK::cluster, blocks, 1};
  if (policy == SplitKPolicy::cluster) return {};
  // Those of a column of tiles read the same columns of the right operand at the same time, which are read from memory
  // once; where all operands are in the L2 cache they need not.
  const std::int64_t rows = grid.size() >= 2 ? grid[0] : 1;
  const double bytes = 2.0 * round.k * static_cast<double>(rounds) *
                       (static_cast<double>(rows) * round.m + static_cast<double>(tiles / rows) * round.n);
  SplitKLaunch launch{.split_k = SplitK::stream_k, .blocks = 0, .lockstep_rows = 1};
  if (bytes > l2_bytes) launch.lockstep_rows = static_cast<int>(std::min(rows, group));
  const std::int64_t columns = columns_of(tiles, launch.lockstep_rows);
  if (columns > std::numeric_limits<std::int32_t>::max() / multiprocessors / rounds)
    return {};  // they count in 32 bits
  const std::int64_t parts =
      std::min<std::int64_t>(multiprocessors / launch.lockstep_rows, columns * rounds / fewest_rounds);
  launch.blocks = static_cast<int>(parts) * launch.lockstep_rows;
  if (parts < 2 || rounds < fewest_rounds) return {};
  const double of_epilogue = 1.0 * round.m * round.n / threads_of_consumer_group(round) * cycles_of_sum;
  const double shared = cycles_by_grid(round, launch, tiles, rounds, cycles_of_round(round), of_epilogue);
  const double alone = cycles_alone(round, tiles, static_cast<double>(rounds), multiprocessors);
  return policy == SplitKPolicy::stream_k || shared < gain * alone ? launch : SplitKLaunch{};
}

}  // namespace tessera::internal
