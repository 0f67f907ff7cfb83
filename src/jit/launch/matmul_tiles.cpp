#include "tessera/jit/choose.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <utility>

#include "jit/compile/compiler.hpp"
#include "jit/launch/matmul_tiles.hpp"
#include "jit/launch/recorded_tiles.hpp"
#include "jit/tune/circumstances.hpp"
#include "tessera/jit/tune.hpp"

namespace tessera::internal {

bool suits_wgmma(const MatmulShape& shape, ElementType operands, const MatmulTarget& target) {
  if (!target.gpu || target.gpu->tier != Target::Tier::wgmma || shape.m == 1 || !has_wgmma(operands)) return false;
  const int step = 16 / info(operands).bytes;
  return shape.k % step == 0 && (shape.nk || shape.n % step == 0);
}

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
// One wgmma instruction covers 32 bytes of k. So the model treats other types as a 16-bit type with as many bytes along
// k. It does not know that results of tf32 and i8 have 32 bits.
std::int64_t in_halves(std::int64_t k, ElementType type) { return k * info(type).bytes / 2; }

// Without wgmma, fp8 operands are multiplied as f16.
ElementType multiplied_as(ElementType type) { return is_fp8(type) ? ElementType::f16 : type; }

Epilogue epilogue_of(MatmulFamily family) {
  return family == MatmulFamily::plain       ? Epilogue::plain
         : family == MatmulFamily::activated ? Epilogue::activated
                                             : Epilogue::residual;
}

MatmulTiles tiles_of(const MmaExtents& extents) { return {extents.m, extents.n, extents.k}; }

std::int64_t cdiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// `from_registers`: the left operand of wgmma comes from there.
const std::vector<MachineModel::Tile>& tiles_for(ElementType operands, bool from_registers,
                                                 const MachineModel& machine) {
  return is_fp8(operands) ? machine.fp8_tiles : from_registers ? machine.left_tiles : machine.tiles;
}

double cycles(const MachineModel::Tile& tile, MatmulFamily family, const MatmulShape& shape, ElementType operands,
              const MatmulTarget& target) {
  const CostModel model(*target.machine, target.multiprocessors);
  MatmulWork work = matmul_work(tile.extents, shape.m, shape.n, shape.k, shape.nk);
  const bool shares = sum_type(operands) == ElementType::f32;  // as SplitKLoop says
  const SplitKLaunch launch = model.split_k(at_launch(work), shares ? target.split_k : SplitKPolicy::none,
                                            shares ? target.multicast : MulticastPolicy::never);
  work.epilogue = epilogue_of(family);
  work.rate = tile.rate;
  work.promotes = is_fp8(operands);
  return model.cycles(work, launch);
}

/// Narrow tiles give few rows, or few columns, more CTAs; they need a right operand along k. Where k is long, it is faster
/// to split it.
bool may_be_narrow(const MatmulShape& shape, ElementType operands, const MatmulTarget& target) {
  constexpr int long_k = 1024;
  return shape.nk && !shape.computes_x && !shape.computes_w && is_half(operands) &&
         (target.split_k == SplitKPolicy::none || shape.k <= long_k);
}

/// wgmma reads only 16-bit operands in any order: it computes the transpose of the result then, so that the right
/// operand comes from registers (codegen/forms/swap_operands.hpp).
bool swaps_operands(const MatmulShape& shape, ElementType operands) {
  return shape.computes_w || (!shape.nk && !is_half(operands));
}
/// Are the right operand's rows made of panels, which have 128 bytes? Computed operands may have a byte an element.
/// The sums that fp8 promotes leave fewer registers for it.
bool may_be_swapped(const MachineModel::Tile& tile, const MatmulShape& shape, ElementType operands) {
  const bool fits = !is_fp8(operands) || (tile.extents.n <= 128 && tile.extents.k == 64);
  return fits && tile.extents.m * (shape.computes_w ? 1 : info(operands).bytes) % 128 == 0;
}

MatmulTiles of_type(MatmulTiles tiles, ElementType operands) {
  tiles.k = tiles.k * 2 / info(operands).bytes;
  return tiles;
}

}  // namespace

MatmulTarget matmul_target(const Device& device) {
  const DeviceInfo& info = device.info();
  const std::string machine_text = tune_mode() == TuneMode::off ? "" : tune_machine(device);
  if (!info.arch) return {.multiprocessors = info.multiprocessors, .machine_text = machine_text};
  return {.gpu = Target::of(*info.arch, generate_options().warp_specialize),
          .multiprocessors = info.multiprocessors,
          .split_k = split_k_policy(),
          .multicast = multicast_policy(),
          .machine = &MachineModel::of(info.name),
          .machine_text = machine_text};
}

MatmulTarget matmul_target(Arch arch) {
  constexpr int of_h200 = 132;
  return {.gpu = Target::of(arch, generate_options().warp_specialize),
          .multiprocessors = of_h200,
          .split_k = split_k_policy(),
          .multicast = multicast_policy()};
}

namespace {

MatmulTiles cpu_tiles(const MatmulShape& shape, int threads) {
  constexpr int few = 16;
  if (shape.m > few) return {shape.m <= 64 ? 64 : 128, shape.m <= 64 ? 64 : 128, along_inner(shape.k, 256, 1)};
  // A few rows are bound by memory: the wider a tile, the more of a memory page it reads at once. All threads have
  // equal parts; a tile costs as much as 16 more columns.
  int n = 64;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int columns = 64; columns <= 256; columns += 64) {
    const std::int64_t cost = cdiv(cdiv(shape.n, columns), std::max(threads, 1)) * (columns + 16);
    if (cost < least) least = cost, n = columns;
  }
  return {static_cast<int>(std::max<std::int64_t>(shape.m, 1)), n, along_inner(shape.k, 1024, 1)};
}

/// Tiles, and the time that a model predicts.
struct Ranked {
  MatmulTiles tiles;
  double time;
};

/// The candidates whose time a model predicts, in no order; none: plain rules choose.
std::vector<Ranked> predicted(MatmulFamily family, const MatmulShape& shape, ElementType operands,
                              const MatmulTarget& target) {
  std::vector<Ranked> candidates;
  if (!target.gpu) return candidates;
  if (operands == ElementType::f32 && shape.m > 16) {
    const CostModel model(*target.machine, target.multiprocessors);
    for (const MachineModel::FmaTile& tile : target.machine->fma_tiles) {
      MatmulTiles tiles = tiles_of(tile.extents);
      tiles.k = along_inner(shape.k, tiles.k, 16);
      candidates.push_back(
          {tiles, model.fma_cost(tile, cdiv(shape.m, tile.extents.m) * cdiv(shape.n, tile.extents.n))});
    }
  } else if (suits_wgmma(shape, operands, target)) {
    const bool swaps = swaps_operands(shape, operands);
    MatmulShape as_halves = swaps ? MatmulShape{shape.n, shape.m, shape.k, true} : shape;
    as_halves.k = in_halves(shape.k, operands);
    std::vector<MachineModel::Tile> all = tiles_for(operands, swaps || shape.computes_x, *target.machine);
    if (may_be_narrow(shape, operands, target))
      std::ranges::copy(target.machine->narrow_tiles, std::back_inserter(all));
    for (const MachineModel::Tile& tile : all) {
      if (swaps && !may_be_swapped(tile, shape, operands)) continue;
      MatmulTiles tiles = tiles_of(tile.extents);
      if (swaps) std::swap(tiles.m, tiles.n);
      candidates.push_back({of_type(tiles, operands), cycles(tile, family, as_halves, operands, target)});
    }
  }
  return candidates;
}

/// By the plain rules.
MatmulTiles ruled(const MatmulShape& shape, ElementType operands, const MatmulTarget& target) {
  if (!target.gpu) return cpu_tiles(shape, target.multiprocessors);
  MatmulTiles tiles = rule_tiles(rule_rows(shape.m, operands), shape, operands);
  // Two CTAs per multiprocessor hide each other's barriers and stores: use a smaller k, if that makes room for them.
  const int bytes = info(multiplied_as(operands)).bytes, row = tiles.k * bytes;
  if (bytes <= 2 && row == 128 && 2 * 2 * (tiles.m + tiles.n) * row > target.gpu->shared_bytes) tiles.k /= 2;
  return tiles;
}

/// Tiles that wgmma can compute and whose accumulators and stages fit, but whose rate nobody fitted: a model knows
/// nothing about them.
std::vector<MatmulTiles> unranked(const MatmulShape& shape, ElementType operands, const MatmulTarget& target) {
  constexpr int most_accumulators = 256 * 128;
  const int bytes = info(operands).bytes, columns = shape.nk ? 32 : 64;  // a row of a panel has 128 bytes
  std::vector<MatmulTiles> all;
  for (int m = 64; m <= 256; m += 64)
    for (int n = columns; n <= 256; n += columns)
      for (const int row : {128, 256})
        if (m * n <= most_accumulators && 3 * (m + n) * row <= target.gpu->shared_bytes)
          all.push_back({m, n, row / bytes});
  return all;
}

/// The neighbors of tiles that a plain rule chose: half and twice of each extent.
std::vector<MatmulTiles> neighbors(const MatmulTiles& tiles, const MatmulShape& shape) {
  std::vector<MatmulTiles> all{tiles};
  const auto extents = [](int extent, std::int64_t whole, bool may_change) {
    std::vector<int> values{extent};
    if (!may_change) return values;
    if (extent >= 32) values.push_back(extent / 2);
    if (extent < whole) values.push_back(extent * 2);
    return values;
  };
  for (const int m : extents(tiles.m, shape.m, tiles.m >= 32))
    for (const int n : extents(tiles.n, shape.n, true))
      for (const int k : extents(tiles.k, shape.k, true))
        if (const MatmulTiles next{m, n, k}; next != tiles) all.push_back(next);
  return all;
}

}  // namespace

// One row for a decode step, few for a batch of them, many for a prompt. Smaller tiles give more CTAs, and only long
// prompts have enough of them; without tensor cores, they cost nothing.
int rule_rows(std::int64_t rows, ElementType operands) {
  if (rows == 1) return 1;
  if (rows <= 16) return 16;
  return rows <= 1024 || !has_matrix_units(multiplied_as(operands)) ? 64 : 128;
}

MatmulTiles rule_tiles(int m, const MatmulShape& shape, ElementType operands) {
  const int n = m == 128 ? 128 : 64;
  const ElementType type = multiplied_as(operands);
  const int bytes = info(type).bytes;
  // One row reads each weight once: use many narrow CTAs, each with as many loads in flight as its registers hold.
  // If elements are neighbors along k, few columns read whole lines, and give narrow matmuls more CTAs.
  if (m == 1) {
    const int columns = shape.nk && shape.n <= 2048 ? 4 : 16;
    return {1, columns, along_inner(shape.k, (bytes <= 2 ? 768 : 512) * 16 / columns, 1)};
  }
  // Shared memory holds a few stages of both operands, for two CTAs or more; for tensor cores, in rows of 128 bytes.
  return {m, n, along_inner(shape.k, has_matrix_units(type) ? 128 / bytes : m == 16 ? 32 : 16, 16)};
}

std::vector<MatmulTiles> matmul_candidates(MatmulFamily family, const MatmulShape& shape, ElementType operands,
                                           const MatmulTarget& target) {
  std::vector<Ranked> ranked = predicted(family, shape, operands, target);
  if (ranked.empty()) return neighbors(ruled(shape, operands, target), shape);
  std::ranges::stable_sort(ranked, {}, &Ranked::time);
  std::vector<MatmulTiles> all;
  const auto add = [&](const MatmulTiles& tiles) {
    if (std::ranges::find(all, tiles) == all.end()) all.push_back(tiles);
  };
  for (const Ranked& candidate : ranked) add(candidate.tiles);
  if (suits_wgmma(shape, operands, target) && operands != ElementType::f32)
    for (const MatmulTiles& tiles : unranked(shape, operands, target)) add(tiles);
  return all;
}

MatmulTiles choose(MatmulFamily family, const MatmulShape& shape, ElementType operands, const MatmulTarget& target) {
  if (!target.machine_text.empty())
    if (const auto tiles = recorded_tiles(family, shape, operands, target)) return *tiles;
  const std::vector<Ranked> ranked = predicted(family, shape, operands, target);
  return ranked.empty() ? ruled(shape, operands, target) : std::ranges::min_element(ranked, {}, &Ranked::time)->tiles;
}

MatmulTiles choose(MatmulFamily family, const MatmulShape& shape, ElementType operands, const Device& device) {
  return choose(family, shape, operands, matmul_target(device));
}

std::vector<MatmulTiles> matmul_candidates(MatmulFamily family, const MatmulShape& shape, ElementType operands,
                                           const Device& device) {
  return matmul_candidates(family, shape, operands, matmul_target(device));
}

bool adds_in_order_of_k(const MatmulShape& shape, ElementType operands, const MatmulTarget& target) {
  return is_half(operands) && suits_wgmma(shape, operands, target) && target.split_k == SplitKPolicy::none;
}

std::vector<MatmulTiles> narrow_tiles() {
  std::vector<MatmulTiles> tiles;
  for (const MachineModel::Tile& tile : MachineModel::h200().narrow_tiles) tiles.push_back(tiles_of(tile.extents));
  return tiles;
}

std::vector<MatmulTiles> wgmma_tiles(ElementType operands) {
  std::vector<MatmulTiles> tiles;
  for (const MachineModel::Tile& tile : tiles_for(operands, false, MachineModel::h200()))
    tiles.push_back(of_type(tiles_of(tile.extents), operands));
  return tiles;
}

}  // namespace tessera::internal
