#include "codegen/schedule/cost_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tessera::internal {
namespace {

constexpr std::int64_t fewest_k_iterations = 8;  // of a stream-K CTA
constexpr std::int64_t lockstep = 8;             // rows of tiles that run together

double ceiling(double a, double b) { return std::ceil(a / b - 1e-9); }
std::int64_t cdiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

double accumulators(const MatmulWork& work) { return 1.0 * work.tile.m * work.tile.n; }
// Threads of the one consumer group that a CTA has with stream-K or in a cluster. In a cluster one warp group has the
// tile if it can, with registers for partials.
int threads_of_stream_k(const MmaExtents& tile) { return tile.m % 128 ? 128 : 256; }
int threads_of_cluster(const MmaExtents& tile) { return tile.m % 128 == 0 && tile.m * tile.n >= 128 * 128 ? 256 : 128; }

}  // namespace

MatmulWork matmul_work(const MmaExtents& tile, std::int64_t m, std::int64_t n, std::int64_t k, bool nk) {
  const auto real = [](std::int64_t extent) { return static_cast<double>(extent); };
  const std::int64_t rows = cdiv(m, tile.m);
  return {.tile = tile,
          .rows = rows,
          .tiles = rows * cdiv(n, tile.n),
          .k_iterations = cdiv(k, tile.k),
          .right_alignment = static_cast<int>(std::gcd(2 * (nk ? k : n), 128)),
          .left_rows = m,
          .right_columns = n,
          .left_aligned = k % 16 == 0,
          .bytes = 2 * (real(m) * real(k) + real(k) * real(n) + real(m) * real(n))};
}

MatmulWork at_launch(const MatmulWork& work) {
  return {.tile = work.tile,
          .rows = work.rows,
          .tiles = work.tiles,
          .k_iterations = work.k_iterations,
          .right_alignment = work.right_alignment};
}

bool is_cooperative(int m, int n, int matmuls, Epilogue epilogue) {
  return m > 128 || m * n * matmuls > 128 * (epilogue == Epilogue::plain ? 192 : 128);
}

double CostModel::waves(const MatmulWork& work, bool multicast) const {
  if (!multicast) return static_cast<double>(cdiv(work.tiles, multiprocessors_));
  return static_cast<double>(
      cdiv(cdiv(work.rows, multicast_ctas) * (work.tiles / work.rows), multiprocessors_ / multicast_ctas));
}

double CostModel::k_iteration(const MatmulWork& work, bool multicast) const {
  const double left = static_cast<double>(std::min<std::int64_t>(work.tile.m, work.left_rows)) *
                      (work.left_aligned ? 1 : machine_.within_sector);
  constexpr int sector = 32, line = 128;
  const double factor = multicast                       ? machine_.multicast
                        : work.right_alignment < sector ? machine_.right_within_sector
                        : work.right_alignment < line   ? machine_.right_within_line
                                                        : 1;
  const double right = factor * static_cast<double>(std::min<std::int64_t>(work.tile.n, work.right_columns));
  const double loaded = (left + right) * 2 * work.tile.k;
  return std::max(loaded / machine_.l2_bandwidth,
                  accumulators(work) * work.tile.k /
                      (machine_.macs * (work.rate > 0 ? work.rate : machine_.rate(work.tile)))) +
         machine_.k_iteration_overhead;
}

double CostModel::epilogue(const MatmulWork& work, int threads, bool in_turn) const {
  const double each = work.epilogue == Epilogue::plain       ? machine_.plain_epilogue
                      : work.epilogue == Epilogue::activated ? machine_.activated_epilogue
                      : in_turn                              ? machine_.residual_ping_pong
                                                             : machine_.residual_cooperative;
  return accumulators(work) / threads * each;
}

double CostModel::cycles(const MatmulWork& work, const SplitKLaunch& launch) const {
  // Neither hides all of the other.
  return machine_.launch_overhead + std::hypot(compute_cycles(work, launch), work.bytes / machine_.memory_bandwidth);
}

double CostModel::compute_cycles(const MatmulWork& work, const SplitKLaunch& launch) const {
  const bool multicast = launch.multicast;
  const double first =
      machine_.first_stage * k_iteration(work, multicast) + (multicast ? machine_.multicast_launch : 0);
  if (launch.split_k == SplitK::cluster) return first + cycles_of_cluster(work, launch.blocks);
  if (launch.split_k == SplitK::stream_k) return first + cycles_of_stream_k(work, launch);
  const double loop = static_cast<double>(work.k_iterations) * k_iteration(work, multicast);
  const double waves = this->waves(work, multicast);
  const bool promotes_together = work.promotes && work.tile.m > 64;
  if (promotes_together || is_cooperative(work.tile.m, work.tile.n, 1, work.epilogue))
    return first + waves * (loop + epilogue(work, 256));
  const double stored = epilogue(work, 128, true);
  if (waves <= 1) return first + loop + stored;
  return first + waves * std::max(loop + machine_.turn, (loop + stored) / 2) + stored;
}

double CostModel::cycles_of_cluster(const MatmulWork& work, int blocks) const {
  const double loop = static_cast<double>(cdiv(work.k_iterations, blocks)) * k_iteration(work);
  const double partials = (blocks - 1) * sizeof(float) * accumulators(work) / machine_.dsmem_bandwidth;
  return loop + machine_.cluster_barriers + partials + epilogue(work, threads_of_cluster(work.tile));
}

double CostModel::cycles_of_stream_k(const MatmulWork& work, const SplitKLaunch& launch) const {
  const double bytes = sizeof(float) * accumulators(work);
  const double of_tile = static_cast<double>(work.k_iterations);
  const double of_block = static_cast<double>(cdiv(work.tiles, launch.lockstep_rows)) * of_tile /
                          static_cast<double>(launch.blocks / launch.lockstep_rows);
  const double others = std::max(ceiling(of_tile, of_block), 1.0), stored = std::max(ceiling(of_block, of_tile), 1.0);
  // Tiles that two consumer groups would take in turns have one, which waits for each stage alone.
  const double factor = is_cooperative(work.tile.m, work.tile.n) ? 1 : machine_.stream_k_factor;
  return factor * of_block * k_iteration(work) + machine_.stream_k +
         stored * epilogue(work, threads_of_stream_k(work.tile)) + bytes / machine_.partial_store_bandwidth +
         others * (machine_.partial_latency + bytes / machine_.partial_load_bandwidth);
}

double CostModel::fma_cost(const MachineModel::FmaTile& tile, std::int64_t tiles) const {
  const double each = static_cast<double>(cdiv(tiles, multiprocessors_));
  return each * tile.extents.m * tile.extents.n / std::min(tile.rate, each * tile.alone);
}

// The L2 cache merges reads of several multiprocessors only where each reads whole lines. Other rows are read once for
// two CTAs by multicast.
SplitKLaunch CostModel::none(const MatmulWork& work, MulticastPolicy policy) const {
  constexpr int least = 16;  // for TMA; threads copy other rows
  if (policy == MulticastPolicy::never || work.rows < 2 || multiprocessors_ < 2 || work.right_alignment < least)
    return {};
  const SplitKLaunch multicast{.multicast = true};
  const bool is_faster = work.right_alignment < 128 && cycles(work, multicast) < cycles(work, {});
  return policy == MulticastPolicy::always || is_faster ? multicast : SplitKLaunch{};
}

// CTAs of a cluster for each grid tile, where they have free multiprocessors.
SplitKLaunch CostModel::cluster(const MatmulWork& work, const SplitKLaunch& none) const {
  const MmaExtents& tile = work.tile;
  // Beside more accumulators shared memory holds too few stages; and with 128 accumulators the threads of one warp
  // group have no registers left for what a cluster takes.
  const bool fits = tile.m * tile.n <= 128 * 128 && (tile.m % 128 == 0 || tile.m * tile.n < 128 * 128);
  const std::int64_t most =
      std::min({multiprocessors_ / work.tiles, work.k_iterations, std::int64_t{most_blocks_of_cluster}});
  SplitKLaunch best = none;
  double least = cycles(work, best);
  for (int blocks = 2; fits && blocks <= most; ++blocks) {
    const SplitKLaunch launch{.split_k = SplitK::cluster, .blocks = blocks};
    if (const double time = cycles(work, launch); time < least) best = launch, least = time;
  }
  return best;
}

SplitKLaunch CostModel::stream_k(const MatmulWork& work) const {
  if (work.k_iterations < fewest_k_iterations) return {};
  // CTAs of a column of tiles read the same columns of the right operand at the same time, so these are read from
  // memory once. If all operands fit in the L2 cache, they need not.
  const double columns = static_cast<double>(work.tiles / work.rows);
  const double bytes = 2.0 * work.tile.k * static_cast<double>(work.k_iterations) *
                       (static_cast<double>(work.rows) * work.tile.m + columns * work.tile.n);
  SplitKLaunch launch{.split_k = SplitK::stream_k};
  if (bytes > machine_.l2_capacity) launch.lockstep_rows = static_cast<int>(std::min(work.rows, lockstep));
  const std::int64_t groups = cdiv(work.tiles, launch.lockstep_rows);
  // CTAs count k-iterations in 32 bits.
  if (groups > std::numeric_limits<std::int32_t>::max() / multiprocessors_ / work.k_iterations) return {};
  const std::int64_t parts =
      std::min<std::int64_t>(multiprocessors_ / launch.lockstep_rows, groups * work.k_iterations / fewest_k_iterations);
  launch.blocks = static_cast<int>(parts) * launch.lockstep_rows;
  return parts < 2 ? SplitKLaunch{} : launch;
}

SplitKLaunch CostModel::split_k(const MatmulWork& work, SplitKPolicy policy, MulticastPolicy multicast) const {
  if (work.k_iterations < 1 || work.tiles < 1) return {};
  const SplitKLaunch none = this->none(work, multicast);
  if (policy == SplitKPolicy::none || (policy == SplitKPolicy::automatic && !may_split(work.tiles))) return none;
  if (policy == SplitKPolicy::cluster) return cluster(work, none);
  if (policy == SplitKPolicy::stream_k) {
    const SplitKLaunch shares = stream_k(work);
    return shares.split_k == SplitK::none ? none : shares;
  }
  const SplitKLaunch clusters = cluster(work, none), shares = stream_k(work);
  if (shares.split_k == SplitK::none) return clusters;
  return cycles(work, shares) < machine_.stream_k_gain * cycles(work, clusters) ? shares : clusters;
}

}  // namespace tessera::internal
