#include "codegen/passes/plan/memory.hpp"

#include <algorithm>
#include <map>

#include "codegen/passes/plan/planning.hpp"
#include "codegen/plan/effects.hpp"
#include "graph/host_ops.hpp"

namespace tessera::internal::codegen {
namespace {

constexpr std::int64_t alignment = 128;
std::int64_t aligned(std::int64_t bytes, std::int64_t to = alignment) { return (bytes + to - 1) / to * to; }

struct Piece {
  std::int64_t bytes;
  std::int64_t alignment;
  Interval in_use;
  std::int64_t* offset;
  bool* in_workspace;
};

using Placed = std::multimap<int, const Piece*>;  // by the last position at which they are in use

// The lowest offset at which no piece is in use at the same time.
std::int64_t lowest(const Piece& piece, const Placed& placed, bool in_workspace) {
  std::int64_t offset = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (auto at = placed.lower_bound(piece.in_use.first); at != placed.end(); ++at) {
      const Piece& other = *at->second;
      if (*other.in_workspace == in_workspace && other.in_use.overlaps(piece.in_use) &&
          offset < *other.offset + aligned(other.bytes) && *other.offset < offset + aligned(piece.bytes)) {
        offset = aligned(*other.offset + aligned(other.bytes), piece.alignment);
        moved = true;
      }
    }
  }
  return offset;
}

// Memory that threads share: buffers and scratch memory.
void place_shared(Plan& plan, const Intervals& buffers, const Intervals& scratch) {
  std::vector<Piece> pieces;
  for (int i = 0; i < plan.buffers.size(); ++i) {
    Buffer& buffer = plan.buffers[BufferId{i}];
    pieces.push_back({buffer.bytes(), buffer.alignment(), buffers.of(i), &buffer.offset, &buffer.in_workspace});
  }
  for (int i = 0; i < plan.scratch.size(); ++i) {
    Scratch& piece = plan.scratch[ScratchId{i}];
    pieces.push_back({piece.bytes, alignment, scratch.of(i), &piece.offset, &piece.in_workspace});
  }
  // Buffers first: tensor cores read only shared memory.
  std::stable_sort(pieces.begin(), pieces.begin() + plan.buffers.size(),
                   [](const Piece& a, const Piece& b) { return a.bytes > b.bytes; });
  const std::int64_t room = plan.target.shared_bytes;
  Placed placed;
  for (const Piece& piece : pieces) {
    if (piece.in_use.last < 0) continue;
    const bool for_others = *piece.in_workspace;  // data that other CTAs read
    *piece.offset = lowest(piece, placed, false);
    if (for_others || *piece.offset + piece.bytes > room) {
      *piece.in_workspace = true;
      *piece.offset = lowest(piece, placed, true);
    }
    placed.emplace(piece.in_use.last, &piece);
    std::int64_t& end = *piece.in_workspace ? plan.workspace_bytes : plan.shared_bytes;
    end = std::max(end, *piece.offset + aligned(piece.bytes));
  }
}

// Values too large for registers: the most used ones get the rest of shared memory.
void place_values(Plan& plan, const std::vector<std::int64_t>& uses) {
  std::vector<int> large;
  for (int i = 0; i < plan.storages.size(); ++i)
    if (plan.storages[StorageId{i}].storage_class == StorageClass::workspace && uses[static_cast<std::size_t>(i)] > 0)
      large.push_back(i);
  std::stable_sort(large.begin(), large.end(),
                   [&](int a, int b) { return uses[static_cast<std::size_t>(a)] > uses[static_cast<std::size_t>(b)]; });
  for (int i : large) {
    Storage& storage = plan.storages[StorageId{i}];
    const std::int64_t bytes =
        aligned(std::int64_t(storage.registers) * plan.threads() * host_bytes(host_type(storage.type)));
    storage.storage_class =
        plan.shared_bytes + bytes <= plan.target.shared_bytes ? StorageClass::shared : StorageClass::workspace;
    std::int64_t& end = storage.storage_class == StorageClass::shared ? plan.shared_bytes : plan.workspace_bytes;
    storage.offset = end;
    end += bytes;
  }
}

}  // namespace

void place_memory(Plan& plan) {
  Intervals buffers(plan.buffers.size()), scratch(plan.scratch.size());
  std::vector<std::int64_t> uses(static_cast<std::size_t>(plan.storages.size()));
  PlanWalk walk(plan);
  walk.each([&](const Role& role, const Step& step, int at, const std::vector<const Interval*>& around) {
    for (const Effect& effect : effects(plan, role, step)) {
      if (effect.space == Effect::Space::buffer) buffers.touch(effect.index, at, around);
      if (effect.space == Effect::Space::scratch) scratch.touch(effect.index, at, around);
    }
    std::int64_t weight = 1;
    for (std::size_t i = 0; i < around.size() && i < 4; ++i) weight *= 16;
    const auto count = [&](ValueId id) { uses[static_cast<std::size_t>(plan.values[id].storage.index)] += weight; };
    for (ValueId id : operands(step)) count(id);
    for (ValueId id : results(step)) count(id);
  });
  plan.shared_bytes = plan.workspace_bytes = 0;
  place_shared(plan, buffers, scratch);
  place_values(plan, uses);
  for (Pipeline& pipeline : plan.pipelines) {
    pipeline.offset = plan.shared_bytes;
    plan.shared_bytes += aligned(pipeline.barrier_bytes());
  }
}

}  // namespace tessera::internal::codegen

bool tessera::internal::plan_pass::memory(lowering::Planning& planning) {
  codegen::place_memory(planning.plan);
  for (codegen::Phase& phase : planning.plan.phases)
    if (planning.plan.workspace_bytes > 0 && phase.schedule.kind == codegen::Schedule::Kind::grid)
      phase.schedule.kind = codegen::Schedule::Kind::persistent;
  planning.plan.progress = codegen::Progress::placed;
  return true;
}
