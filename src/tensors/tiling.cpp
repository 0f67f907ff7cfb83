// The tiles of fused kernels.
#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "jit/launch/attention_tiles.hpp"
#include "tensors/kernel_writer.hpp"

namespace tessera::internal {
namespace {

struct Accessed {
  Placement place;
  Use use;
};

std::vector<Accessed> accesses(const TensorProgram& program, const Fusion& fusion, const FusedKernel& kernel) {
  std::vector<Accessed> all;
  for (const auto& [v, use] : kernel.reads)
    all.push_back({used_part(placement_of(program, fusion, v), use), normalized(kernel, use)});
  for (const Use& use : kernel.made) {
    Extents extents = Extents::of_rank(static_cast<int>(use.size()));
    for (std::size_t axis = 0; axis < use.size(); ++axis) extents[static_cast<int>(axis)] = use[axis].extent;
    all.push_back({dense_placement(-1, extents), normalized(kernel, use)});
  }
  for (const Result& result : kernel.results) {
    const Placement place = result_placement(program, fusion, result);
    all.push_back({place, normalized(kernel, whole_domain(place.extents))});
  }
  return all;
}

// Can an axis of the domain be merged into the next one? Each access has all of both, one after the other in memory, or
// is broadcast along both.
bool merges(const std::vector<Accessed>& all, const Extents& domain, int axis) {
  if (domain[axis] <= 1) return true;
  if (domain[axis] * domain[axis + 1] > std::numeric_limits<std::int32_t>::max()) return false;
  return std::all_of(all.begin(), all.end(), [&](const Accessed& access) {
    int outer = -1, inner = -1;
    for (std::size_t i = 0; i < access.use.size(); ++i) {
      if (access.use[i].axis == axis) outer = static_cast<int>(i);
      if (access.use[i].axis == axis + 1) inner = static_cast<int>(i);
    }
    if (outer < 0 && inner < 0) return true;
    if (outer < 0 || inner != outer + 1) {
      // Broadcast along the outer one: then it must be along the inner one, too.
      return outer < 0 && access.place.extents[inner] == 1 && domain[axis + 1] > 1;
    }
    const AxisUse &of_outer = access.use[static_cast<std::size_t>(outer)],
                  &of_inner = access.use[static_cast<std::size_t>(inner)];
    if (of_outer.group != 1 || of_inner.group != 1 || of_outer.chunk || of_inner.chunk) return false;
    const std::int64_t m = access.place.extents[outer], n = access.place.extents[inner];
    if (m == 1 && n == 1) return domain[axis + 1] > 1;
    if (m != domain[axis] || n != domain[axis + 1]) return false;
    return n == 1 || access.place.strides[static_cast<std::size_t>(outer)] ==
                         n * access.place.strides[static_cast<std::size_t>(inner)];
  });
}

void merge_axes(Tiling& tiling, std::vector<Accessed>& all, const FusedKernel& kernel) {
  int rows = -1, columns = -1;
  if (!kernel.anchors.empty()) {
    rows = kernel.anchor_use[kernel.anchor_use.size() - 2].axis, columns = kernel.anchor_use.back().axis;
  }
  const unsigned kept = kernel.whole | kernel.single | kernel.fixed;
  for (int axis = 0; axis + 1 < tiling.domain.rank(); ++axis) {
    if ((kept >> axis & 1u) || (kept >> (axis + 1) & 1u) || axis == rows || axis == columns || axis + 1 == columns)
      continue;
    if (!merges(all, tiling.domain, axis)) continue;
    tiling.merged |= 1u << axis;
    tiling.domain[axis + 1] *= tiling.domain[axis];
    tiling.domain[axis] = 1;
    for (Accessed& access : all) merge_axis(access.place, access.use, axis);
  }
}

// The axes of the domain along which elements of large tensors lie beside each other in memory.
unsigned axes_beside(const std::vector<Accessed>& all, std::int64_t elements) {
  unsigned axes = 0;
  for (const Accessed& access : all) {
    if (access.place.extents.size() * 4 < elements) continue;
    for (std::size_t i = 0; i < access.use.size(); ++i)
      if (access.use[i].axis >= 0 && access.place.strides[i] == 1 && access.place.extents[static_cast<int>(i)] > 1)
        axes |= 1u << access.use[i].axis;
  }
  return axes;
}

// Do rows of so many elements lie along memory, in most of the large tensors?
bool is_beside_whole(const std::vector<Accessed>& all, std::int64_t row) {
  std::int64_t along = 0, across = 0;
  for (const Accessed& access : all)
    for (std::size_t i = 0; i < access.use.size(); ++i)
      if (access.use[i].axis == AxisUse::whole && access.use[i].extent == row)
        (access.place.strides[i] == 1 ? along : across) += access.place.extents.size();
  return along >= across;
}

// The elements of a tensor that one access of a thread can have, up to 16 bytes of them.
std::int64_t elements_of_access(const Accessed& access, std::int64_t bytes) {
  std::int64_t aligned = 16 / bytes;  // in elements; the memory itself is aligned to 16 bytes or more
  aligned = std::gcd(aligned, access.place.offset);
  bool has_step_of_one = false;
  for (std::size_t i = 0; i < access.use.size(); ++i) {
    if (access.place.extents[static_cast<int>(i)] <= 1) continue;
    if (access.place.strides[i] == 1)
      has_step_of_one = true;
    else
      aligned = std::gcd(aligned, access.place.strides[i]);
  }
  return has_step_of_one ? aligned : 1;
}

// The elements of a tile on a GPU: for 256 threads with two accesses of 16 bytes each; fewer where accesses are
// narrower, or where that leaves multiprocessors without work.
std::int64_t elements_of_tile(const TensorProgram& program, const std::vector<Accessed>& all, std::int64_t elements,
                              const MatmulTarget& target) {
  constexpr std::int64_t most = 2048, of_narrow = 1024, least = 128;
  std::int64_t of_access = 4;
  for (const Accessed& access : all) {
    if (access.place.base < 0 || access.place.extents.size() * 2 < elements) continue;
    const ElementType type = program.values[static_cast<std::size_t>(access.place.base)].type;
    of_access = std::min(of_access, elements_of_access(access, info(type).bytes));
  }
  const std::int64_t of_each = elements / (2 * std::max(target.multiprocessors, 1));
  return std::max(std::min(of_access == 4 ? most : of_narrow, of_each), least);
}

}  // namespace

Tiling choose_tiling(const TensorProgram& program, const Fusion& fusion, const FusedKernel& kernel,
                     const MatmulTarget& target) {
  const auto value = [&](int v) -> const Value& { return program.values[static_cast<std::size_t>(v)]; };
  Tiling tiling;
  tiling.domain = kernel.domain;
  std::vector<Accessed> all = accesses(program, fusion, kernel);
  const bool is_attention = !kernel.anchors.empty() && value(kernel.anchors[0]).op == TensorOp::attention;
  if (!is_attention) merge_axes(tiling, all, kernel);
  tiling.tile.fill(1);
  const auto tile = [&](int axis) -> int& { return tiling.tile[static_cast<std::size_t>(axis)]; };
  const bool is_gpu = target.gpu.has_value();

  if (is_attention) {
    const Value& x = value(kernel.anchors[0]);
    const Extents &q = value(x.in[0]).extents, &k = value(x.in[1]).extents;
    const std::int64_t keys = k[k.rank() - 2];
    AttentionTiles tiles{static_cast<int>(x.attr[6]), static_cast<int>(x.attr[7]), static_cast<int>(x.attr[8])};
    if (tiles.queries == 0)
      tiles =
          attention_tiles({.operands = value(x.in[0]).type,
                           .head_width = static_cast<int>(std::max(q[q.rank() - 1], x.extents[x.extents.rank() - 1])),
                           .seen = x.attr[0] != 0 ? (keys + 1) / 2 : keys,
                           .computes = x.in.size() > 3,
                           .queries = q[q.rank() - 2],
                           .heads = q.size() / std::max<std::int64_t>(q[q.rank() - 2] * q[q.rank() - 1], 1),
                           .multiprocessors = target.multiprocessors},
                          is_gpu, target.has_wgmma());
    tile(kernel.anchor_use[kernel.anchor_use.size() - 2].axis) = tiles.queries;
    tiling.inner = keys == 1 ? 1 : tiles.keys, tiling.occupancy = tiles.blocks;
    return tiling;
  }
  if (!kernel.anchors.empty()) {
    const Value& x = value(kernel.anchors[0]);
    const int rows = kernel.anchor_use[kernel.anchor_use.size() - 2].axis, columns = kernel.anchor_use.back().axis;
    const Value &a = value(x.in[0]), &b = value(x.in[1]);
    MatmulShape shape{.m = tiling.domain[rows], .n = tiling.domain[columns], .k = a.extents[a.extents.rank() - 1]};
    const auto reads = [&](int v) { return is_read(program, fusion, kernel, v); };
    shape.computes_x = !reads(x.in[0]), shape.computes_w = !reads(x.in[1]);
    if (!shape.computes_w) {
      const Placement place = placement_of(program, fusion, x.in[1]);
      const auto rank = static_cast<std::size_t>(b.extents.rank());
      shape.nk = place.strides[rank - 2] == 1 && place.strides[rank - 1] != 1;
    }
    MatmulFamily family = MatmulFamily::plain;
    for (int member : kernel.members)
      if (is_costly(value(member))) family = MatmulFamily::activated;
    for (const auto& [v, use] : kernel.reads) {
      const bool is_inner =
          std::any_of(use.begin(), use.end(), [](const AxisUse& axis) { return axis.axis == AxisUse::inner; });
      if (!is_inner && value(v).extents.size() >= kernel.domain.size()) family = MatmulFamily::residual;
    }
    const ElementType operands = x.attr[0] != 0 ? ElementType::tf32 : a.type;
    MatmulTiles tiles{static_cast<int>(x.attr[1]), static_cast<int>(x.attr[2]), static_cast<int>(x.attr[3])};
    const bool is_given = tiles.m > 0;
    if (!is_given) tiles = choose(family, shape, operands, target);
    // Beside 128 accumulators, a thread has no registers for a bias that is converted from a narrower type.
    const auto is_narrow_row = [&](const auto& read) {
      const AxisUse* of_rows = nullptr;
      bool is_inner = false;
      for (const AxisUse& along : read.second) {
        if (along.axis == rows) of_rows = &along;
        is_inner |= along.axis == AxisUse::inner;
      }
      return !is_inner && info(value(read.first).type).bytes < 4 && (!of_rows || of_rows->extent == 1);
    };
    constexpr int most_accumulators = 128 * 192;
    if (!is_given && target.has_wgmma() && tiles.m * tiles.n > most_accumulators &&
        std::any_of(kernel.reads.begin(), kernel.reads.end(), is_narrow_row))
      tiles.n = 128;
    tile(rows) = tiles.m, tile(columns) = tiles.n, tiling.inner = shape.k == 1 ? 1 : tiles.k;
    // Accumulators of two products take the registers of one with twice the columns.
    if (!is_given && kernel.anchors.size() > 1) {
      constexpr int panel = 64;  // columns of a right operand [k, n] that wgmma takes at once
      tile(columns) = tiles.n > panel ? std::max(tiles.n / 2 / panel * panel, panel) : tiles.n;
    }
    return tiling;
  }
  // Rows, as many as have some thousand elements in all; or elements, first those beside each other in memory.
  constexpr std::int64_t of_cpu = 8192, least_columns = 32;
  std::int64_t row = 1;
  for (std::int64_t elements : kernel.row) row *= std::max<std::int64_t>(elements, 1);
  row *= kernel.hidden_row;
  std::int64_t size = row;
  for (int axis = 0; axis < tiling.domain.rank(); ++axis)
    if (!(kernel.whole >> axis & 1u)) size *= tiling.domain[axis];
  const unsigned kept = kernel.whole | kernel.single, beside = axes_beside(all, size);
  std::int64_t elements = is_gpu ? elements_of_tile(program, all, size, target) : of_cpu;
  if (kernel.loops) {
    // The row lies along memory, or across it: then tiles have columns, too.
    constexpr std::int64_t of_chunk = 4096;
    tiling.row = row;
    row = tiling.inner = static_cast<int>(is_beside_whole(all, tiling.row) ? of_chunk : of_chunk / least_columns);
    elements = of_chunk;
  }
  // By itself the generator takes a thread for two narrow accesses.
  constexpr std::int64_t of_thread = 8;
  if (is_gpu && kernel.whole == 0 && kernel.single == 0 && elements < 2048)
    tiling.warps = static_cast<int>(
        std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(elements / (32 * of_thread), 1))));
  std::int64_t budget = std::max<std::int64_t>(elements / row, 1);
  const auto grow = [&](int axis, std::int64_t most) {
    tile(axis) = static_cast<int>(std::min(tiling.domain[axis], most));
  };
  for (int axis = 0; axis < tiling.domain.rank(); ++axis)
    if ((beside >> axis & 1u) && !(kept >> axis & 1u) && tiling.domain[axis] > 1) {
      grow(axis, least_columns);
      budget /= tile(axis);
    }
  for (int axis = tiling.domain.rank(); axis-- > 0 && budget > 1;) {
    if ((kept >> axis & 1u) || tiling.domain[axis] <= 1) continue;
    const int before = tile(axis);
    grow(axis, before * static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(budget))));
    budget /= std::max(tile(axis) / before, 1);
  }
  return tiling;
}

}  // namespace tessera::internal
