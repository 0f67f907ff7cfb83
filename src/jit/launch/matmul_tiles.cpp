#include "tessera/jit/choose.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "jit/compile/compiler.hpp"
#include "jit/launch/matmul_tiles.hpp"

namespace tessera::internal {
namespace {

int power_at_least(int n) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(n))); }

// A tile extent along the inner axis, at most `most`: preferably one of useful size, in whole steps, that divides the
// width, because the part of a tile beyond the width is computed for nothing.
int along_inner(std::int64_t width, int most, int step) {
  const int least = std::max(step, 32), reach = static_cast<int>(std::min<std::int64_t>(width, most));
  for (int k = reach / step * step; k >= least; k -= step)
    if (width % k == 0) return k;
  return std::min(most, std::max(power_at_least(reach), step));
}

bool is_half(ElementType type) { return type == ElementType::f16 || type == ElementType::bf16; }
// One wgmma instruction covers half as much of k for tf32, which has twice as many bytes. So the model treats tf32 as a
// 16-bit type with twice the k, and halves the tile's k. The model does not know that tf32 results are f32, too.
int halves_of(ElementType type) { return info(type).bytes / 2; }

// fp8 operands are multiplied as f16.
ElementType multiplied_as(ElementType type) {
  return info(type).bytes == 1 && info(type).kind == ElementKind::real ? ElementType::f16 : type;
}

// ---- The model of the time on sm_90a, in cycles of a multiprocessor. It was fitted to 710 measurements on an H200: 94
// shapes with each candidate, alone and in clusters (mean error: one sixth). Costs equal for all tiles are left out.

constexpr double peak = 2048;  // multiply-adds of wgmma per cycle, for 16-bit operands

struct Candidate {
  MatmulTiles tiles;
  double rate;       // share of the peak that the loop over k reaches while its operands are in shared memory
  bool cooperative;  // both warp groups share a tile and store it together; otherwise they take ping-pong turns: one
                     // multiplies while the other stores
};
constexpr Candidate candidates[] = {
    {{128, 256, 64}, 0.88, true},  {{256, 128, 64}, 0.78, true}, {{128, 192, 64}, 0.88, false},
    {{128, 128, 64}, 0.98, false}, {{64, 256, 64}, 0.84, false}, {{64, 192, 64}, 0.71, false},
    {{64, 128, 64}, 0.69, false},  {{128, 64, 64}, 0.66, false}, {{64, 64, 128}, 0.41, false},
    {{64, 64, 64}, 0.41, false},
};
constexpr double bytes_a_cycle = 52;        // operand bytes that TMA loads from the L2 cache, per multiprocessor
constexpr double across = 1.42;             // factor on the bytes of rows that begin within a sector of that cache
constexpr double of_k_iteration = 25;       // barriers
constexpr double first_k_iteration = 0.45;  // in k-iterations: the time until the first stage is full
/// With 192 accumulators, a thread only has registers left to store them: so warp groups share such a tile.
bool is_cooperative(const Candidate& candidate, MatmulFamily family) {
  return candidate.cooperative || (family != MatmulFamily::plain && candidate.tiles.m * candidate.tiles.n > 128 * 128);
}
/// Cycles of the epilogue per accumulator of a thread. While one consumer group waits for data from memory, the other
/// multiplies; where warp groups share a tile, all of them wait at once. (Both figures from GPT-2's matmuls of 8192
/// rows on an H200.)
double epilogue_of_sum(MatmulFamily family, bool cooperative) {
  if (family == MatmulFamily::residual) return cooperative ? 270 : 144;
  return family == MatmulFamily::plain ? cycles_of_sum : 2 * cycles_of_sum;
}

/// The number of tiles of the multiprocessor that has the most of them.
double waves_of(std::int64_t count, std::int64_t multiprocessors) {
  return static_cast<double>((count + multiprocessors - 1) / multiprocessors);
}

double cycles(const Candidate& candidate, MatmulFamily family, const MatmulShape& shape, const MatmulTarget& target) {
  const int multiprocessors = std::max(target.multiprocessors, 1);
  const MatmulTiles& tiles = candidate.tiles;
  const std::int64_t grid[] = {(shape.m + tiles.m - 1) / tiles.m, (shape.n + tiles.n - 1) / tiles.n};
  const std::int64_t count = grid[0] * grid[1];
  const double waves = waves_of(count, multiprocessors);
  const double sums = static_cast<double>(tiles.m) * tiles.n;
  // Rows of the left operand beyond its extent are not loaded; columns are.
  const auto bytes_of_row = [&](std::int64_t columns) { return 2.0 * tiles.k * (columns % 16 ? across : 1); };
  const double bytes = static_cast<double>(std::min<std::int64_t>(tiles.m, shape.m)) * bytes_of_row(shape.k) +
                       tiles.n * bytes_of_row(shape.nk ? shape.k : shape.n);
  const double k_iteration = std::max(bytes / bytes_a_cycle, sums * tiles.k / (peak * candidate.rate)) + of_k_iteration;
  const std::int64_t k_iterations = (shape.k + tiles.k - 1) / tiles.k;
  const MmaExtents extents{tiles.m, tiles.n, tiles.k};
  const SplitKLaunch shared = split_k_of_launch(extents, grid, k_iterations, multiprocessors, target.split_k);
  const int cluster = shared.split_k == SplitK::cluster ? shared.blocks : 1;
  const double loop = static_cast<double>((k_iterations + cluster - 1) / cluster) * k_iteration;
  const bool cooperative = is_cooperative(candidate, family);
  const double of_sum = epilogue_of_sum(family, cooperative);
  const double epilogue = sums / (cooperative ? 256 : 128) * of_sum;
  const double begin = first_k_iteration * k_iteration;
  if (shared.split_k == SplitK::stream_k)
    return begin + cycles_of_stream_k(extents, shared, count, k_iterations, k_iteration,
                                      sums / threads_of_consumer_group(extents) * of_sum);
  if (cluster > 1) return begin + loop + cycles_of_cluster(extents, cluster) + epilogue;
  if (cooperative) return begin + waves * (loop + epilogue);
  return begin + waves * std::max(loop + cycles_of_wait, (loop + epilogue) / 2) + epilogue;
}

// ---- SIMT matmuls of f32, in fused multiply-adds.

// The rates are estimates from a few shapes on an H200; they were not fitted.
struct FmaCandidate {
  MatmulTiles tiles;
  double rate;   // share of a multiprocessor's fused multiply-adds, with as many resident tiles as fit
  double alone;  // the same for one tile
};
constexpr FmaCandidate fma_candidates[] = {{{128, 128, 16}, 0.85, 0.6}, {{64, 64, 16}, 0.6, 0.2}};

double cycles(const FmaCandidate& candidate, const MatmulShape& shape, const MatmulTarget& target) {
  const MatmulTiles& tiles = candidate.tiles;
  const std::int64_t count = ((shape.m + tiles.m - 1) / tiles.m) * ((shape.n + tiles.n - 1) / tiles.n);
  const double each = waves_of(count, std::max(target.multiprocessors, 1));
  return each * tiles.m * tiles.n / std::min(candidate.rate, each * candidate.alone);
}

/// Are there enough rows for wgmma, and is each operand TMA-addressable, with rows that are multiples of 16 bytes
/// apart? (For other operands, threads load what wgmma reads, if the tiles suit it; which tiles are best then has not
/// been measured.)
bool suits_wgmma(const MatmulShape& shape, ElementType operands, const MatmulTarget& target) {
  if (!target.gpu || target.gpu->tier != Target::Tier::wgmma || shape.m == 1) return false;
  if (operands == ElementType::tf32) return shape.nk && shape.k % 4 == 0;  // its rows run along k
  return is_half(operands) && shape.k % 8 == 0 && (shape.nk || shape.n % 8 == 0);
}

MatmulTiles of_type(MatmulTiles tiles, ElementType operands) {
  tiles.k /= halves_of(operands);
  return tiles;
}

}  // namespace

MatmulTarget matmul_target(const Device& device) {
  const DeviceInfo& info = device.info();
  if (!info.arch) return {};
  return {Target::of(*info.arch, generate_options().warp_specialize), info.multiprocessors, split_k_policy()};
}

int rule_rows(std::int64_t rows, ElementType operands, bool gpu) {
  // One row for a decode step, few for a batch of them, many for a prompt.
  if (rows == 1) return 1;
  if (rows <= 16) return 16;
  // On a GPU, smaller tiles give more CTAs, and only long prompts have enough of them; without tensor cores, smaller
  // tiles cost nothing.
  const bool small = gpu ? rows <= 1024 || !has_matrix_units(multiplied_as(operands)) : rows <= 64;
  return small ? 64 : 128;
}

MatmulTiles rule_tiles(int m, const MatmulShape& shape, ElementType operands, bool gpu) {
  const int n = m == 128 ? 128 : 64;
  if (!gpu) return {m, n, along_inner(shape.k, 256, 1)};
  const ElementType type = multiplied_as(operands);
  const int bytes = info(type).bytes;
  // One row reads each weight once: use many narrow CTAs, each with as many loads in flight as its registers hold.
  if (m == 1) return {1, 16, along_inner(shape.k, bytes <= 2 ? 768 : 512, 1)};
  // Shared memory holds a few stages of both operands, for two CTAs or more; for tensor cores, in rows of 128 bytes.
  return {m, n, along_inner(shape.k, has_matrix_units(type) ? 128 / bytes : m == 16 ? 32 : 16, 16)};
}

MatmulTiles choose(MatmulFamily family, const MatmulShape& shape, ElementType operands, const MatmulTarget& target) {
  const bool gpu = target.gpu.has_value();
  if (gpu && operands == ElementType::f32 && shape.m > 16) {
    const auto time = [&](const FmaCandidate& candidate) { return cycles(candidate, shape, target); };
    MatmulTiles tiles = std::ranges::min_element(fma_candidates, {}, time)->tiles;
    tiles.k = along_inner(shape.k, tiles.k, 16);
    return tiles;
  }
  if (!suits_wgmma(shape, operands, target)) {
    MatmulTiles tiles = rule_tiles(rule_rows(shape.m, operands, gpu), shape, operands, gpu);
    // Two CTAs per multiprocessor hide each other's barriers and stores: use a smaller k, if that makes room for them.
    const int bytes = info(multiplied_as(operands)).bytes, row = tiles.k * bytes;
    if (gpu && bytes <= 2 && row == 128 && 2 * 2 * (tiles.m + tiles.n) * row > target.gpu->shared_bytes) tiles.k /= 2;
    return tiles;
  }
  MatmulShape as_halves = shape;
  as_halves.k *= halves_of(operands);
  const auto time = [&](const Candidate& candidate) { return cycles(candidate, family, as_halves, target); };
  return of_type(std::ranges::min_element(candidates, {}, time)->tiles, operands);
}

MatmulTiles choose(MatmulFamily family, const MatmulShape& shape, ElementType operands, const Device& device) {
  return choose(family, shape, operands, matmul_target(device));
}

std::vector<MatmulTiles> wgmma_tiles(ElementType operands) {
  std::vector<MatmulTiles> tiles;
  for (const Candidate& candidate : candidates) tiles.push_back(of_type(candidate.tiles, operands));
  return tiles;
}

}  // namespace tessera::internal
