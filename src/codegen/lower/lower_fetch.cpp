#include "codegen/lower/lower_fetch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/budget.hpp"

namespace tessera::internal::lowering {
namespace {

constexpr int most_stages_wanted = 16;  // limit for a stage hint; more has never been of use

}  // namespace

Fetches::Fetches(Steps& steps, const std::map<Id, MatmulPlan>& matmuls) : steps_(steps), matmuls_(matmuls) {
  for (Id id : by_number(steps.analysis)) {
    if (!matmuls_.contains(id)) continue;
    MatmulPlan& plan = matmuls_.at(id);
    Matmul& matmul = plan.matmul;
    if (matmul.kind == MatmulKind::gemv) continue;
    const int k = round_up(matmul.k, matmul.kind == MatmulKind::mma_sync ? matmul.depth() : 4);
    for (int side : {0, 1}) {
      MatmulOperand& operand = side ? matmul.b : matmul.a;
      const Source& source = side ? plan.b : plan.a;
      if (source.load == no_id) continue;
      const Axes &of_k = source.axes[side ? 0 : 1], &of_other = source.axes[side];
      const int other = plan.layout.cover(side);
      operand.buffer = operand.k_major ? buffer_for(source.load, of_other, of_k, operand.stored, other, k)
                                       : buffer_for(source.load, of_k, of_other, operand.stored, k, other);
      // Threads read consecutive rows: if no row is swizzled, they do so at one address and constant offsets.
      if (matmul.kind == MatmulKind::simt && !operand.k_major) steps.plan.buffers[operand.buffer].odd = true;
    }
  }
  for (const Buffer& buffer : steps.plan.buffers) bytes_ += buffer.bytes();
  // Numbers that follow from the enclosing loop's counter and from values that the loop does not change.
  known_ahead_ = steps.analysis.uniform_values(
      [&](Id id, RegionId region) { return steps.analysis.is_counter(id) || steps.node(id).region != region; });
}

BufferId Fetches::buffer_for(Id load, const Axes& row_axes, const Axes& column_axes, ElementType stored, int rows,
                             int columns) {
  columns = round_up(columns, 16 / info(stored).bytes);
  std::vector<Tile>& tiles = tiles_[load];
  for (const Tile& tile : tiles)
    if (tile.rows == row_axes && tile.columns == column_axes) {
      Buffer& buffer = steps_.plan.buffers[tile.buffer];
      buffer.rows = std::max(buffer.rows, rows);
      buffer.columns = std::max(buffer.columns, columns);
      return tile.buffer;
    }
  // A load has one buffer for each pair of axes along which matmuls read it.
  const std::size_t before = tiles.size();
  std::string suffix = before == 0 ? "" : before == 1 ? "_transposed" : fmt::format("_transposed{}", before);
  Buffer buffer;
  buffer.label = steps_.values.label(load, "tile", std::move(suffix));
  buffer.type = stored;
  buffer.rows = rows;
  buffer.columns = columns;
  tiles.push_back({steps_.plan.buffers.add(std::move(buffer)), row_axes, column_axes});
  return tiles.back().buffer;
}

BufferId Fetches::add_buffer(Buffer buffer) {
  bytes_ += buffer.bytes();
  return steps_.plan.buffers.add(std::move(buffer));
}

LoopId Fetches::loop_of(BufferId buffer) const {
  const auto found = loop_of_.find(buffer);
  return found == loop_of_.end() ? LoopId{} : found->second;
}

LoopId Fetches::within(Id matmul) const {
  const auto found = within_.find(matmul);
  return found == within_.end() ? LoopId{} : found->second;
}

bool Fetches::is_known_ahead(Id id, RegionId region) const {
  return steps_.node(id).region != region || known_ahead_[id];
}

Fetch Fetches::fetch(const std::vector<Id>& loads, LoopId loop) {
  Fetch fetch{.loop = loop, .tiles = {}};
  for (Id load : loads)
    for (const Tile& tile : tiles_.at(load)) {
      TileAccess access = steps_.access_of(load);
      const std::vector<TileAccess::Axis> axes = std::move(access.axes);
      const int fast = access.fast;
      // Rows, then columns: the buffer's order. An axis that the matmul does not see has an extent of 1, and so has its
      // place in the buffer.
      access.axes.clear();
      access.fast = -1;
      for (int axis = 0; axis < static_cast<int>(axes.size()); ++axis)
        if (!std::ranges::count(tile.rows, axis) && !std::ranges::count(tile.columns, axis))
          access.axes.push_back(axes[static_cast<std::size_t>(axis)]);
      for (const Axes* of_buffer : {&tile.rows, &tile.columns}) {
        TileAccess::Axis unit;
        unit.tensor_axis = -1;
        unit.index = literal(0);
        if (of_buffer->empty()) access.axes.push_back(unit);
        for (const int axis : *of_buffer) {
          if (axis == fast) access.fast = static_cast<int>(access.axes.size());
          access.axes.push_back(axes[static_cast<std::size_t>(axis)]);
        }
      }
      const int last = static_cast<int>(access.axes.size()) - 1;
      if (access.fast != last) access.vector = 1;
      access.vector = std::min(access.vector, 16 / info(steps_.node(load).type).bytes);
      const int columns = std::max(static_cast<int>(tile.columns.size()), 1);
      fetch.tiles.push_back({.buffer = tile.buffer, .access = std::move(access), .column_axes = columns});
    }
  return fetch;
}

void Fetches::in_place(Id load) {
  if (!tiles_.contains(load) || fetched_ahead_.contains(load)) return;
  steps_.push(load, fetch({load}, {}));
  steps_.push(load, CpAsyncCommit{});
  steps_.push(load, CpAsyncWait{0});
}

int Fetches::stages_for(const std::vector<Id>& loads) const {
  std::int64_t bytes = 0;
  for (Id load : loads)
    for (const Tile& tile : tiles_.at(load)) bytes += steps_.plan.buffers[tile.buffer].stage_bytes();
  const std::int64_t others = bytes_ - bytes;
  // Accumulators that take half of a multiprocessor's registers leave none for a second CTA. Warps that share few rows
  // have few, and wait for one another: other CTAs hide that.
  int sums = 0;
  bool shares_rows = false;
  for (const auto& [id, plan] : matmuls_) {
    sums = std::max(sums, plan.layout.registers());
    shares_rows |= plan.matmul.slices() > 1;
  }
  const int few = shares_rows ? 4 : 2;
  const int blocks = sums < Budget(steps_.analysis.target, steps_.threads, true).limit(2) ? few : 1;
  constexpr int as_we_like = 4;
  const int wanted = steps_.analysis.hints.stages;
  for (int stages = wanted > 0 ? std::min(wanted, most_stages_wanted) : as_we_like; stages > 1; --stages)
    if (others + bytes * stages <= staging_bytes(steps_.analysis.target, stages, blocks)) return stages;
  return 1;
}

void Fetches::ahead(RegionId region, Loop& loop) {
  const std::vector<Id>& nodes = steps_.analysis.order[region];
  std::vector<Id> loads;
  for (Id id : nodes) {
    const Node& at = steps_.node(id);
    if (at.op == Op::load && tiles_.contains(id) &&
        std::all_of(at.in.begin(), at.in.end(), [&](Id in) { return is_known_ahead(in, region); }))
      loads.push_back(id);
  }
  if (loads.empty()) return;
  loop.stages = stages_for(loads);
  if (loop.stages == 1) return;
  for (Id load : loads)
    for (const Tile& tile : tiles_.at(load)) {
      Buffer& buffer = steps_.plan.buffers[tile.buffer];
      bytes_ -= buffer.bytes();
      buffer.stages = loop.stages;
      bytes_ += buffer.bytes();
      loop_of_[tile.buffer] = loop.loop;
    }
  const Id first = loads[0];
  loop.arrive.push_back(steps_.step(first, CpAsyncWait{loop.stages - 2}));
  // Indices of the iteration that is fetched are computed separately from the loop's body.
  steps_.within(loop.ahead, [&] {
    for (Id id : nodes) {
      const Node& at = steps_.node(id);
      if (!known_ahead_[id] || at.shape.rank() > 0) continue;
      if (at.op == Op::extent) steps_.extent(id);
      if (is_elementwise(at.op)) steps_.compute(id);
    }
    steps_.push(first, fetch(loads, loop.loop));
  });
  loop.issued.push_back(steps_.step(first, CpAsyncCommit{}));
  fetched_ahead_.insert(loads.begin(), loads.end());
  const auto reads_ahead = [&](Id id) { return matmuls_.contains(id) && matmul(id).matmul.reads_ahead; };
  if (const auto found = std::ranges::find_if(nodes, reads_ahead); found != nodes.end()) within_[*found] = loop.loop;
}

}  // namespace tessera::internal::lowering
