// memory: offsets in shared memory. What is not in use at the same time shares a place; what does not fit goes to the
// workspace.
#include <algorithm>

#include "codegen/effects.hpp"
#include "codegen/lowering.hpp"

namespace tessera::lowering {
namespace {

constexpr std::int64_t alignment = 128;
std::int64_t aligned(std::int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

struct Piece {
  std::int64_t bytes;
  Interval in_use;
  std::int64_t* offset;
  bool* in_workspace;
};

// The lowest offset at which nothing is that is in use at the same time.
std::int64_t lowest(const Piece& piece, const std::vector<Piece>& placed, bool in_workspace) {
  std::int64_t offset = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (const Piece& other : placed)
      if (*other.in_workspace == in_workspace && other.in_use.overlaps(piece.in_use) &&
          offset < *other.offset + aligned(other.bytes) && *other.offset < offset + aligned(piece.bytes)) {
        offset = *other.offset + aligned(other.bytes);
        moved = true;
      }
  }
  return offset;
}

}  // namespace

void place_memory(Plan& plan) {
  Intervals buffers(plan.buffers.size()), scratch(plan.scratch.size());
  std::vector<std::int64_t> uses(plan.values.size());
  int position = 0;
  std::vector<Interval*> loops;
  std::vector<std::unique_ptr<Interval>> all;
  walk(plan.steps, position, loops, all, [&](const Step& step, int at, const std::vector<Interval*>& around) {
    for (const Effect& effect : effects(plan, step)) {
      const auto i = static_cast<std::size_t>(effect.index);
      if (effect.space == Effect::Space::buffer) buffers.touch(i, at, around);
      if (effect.space == Effect::Space::scratch) scratch.touch(i, at, around);
    }
    std::int64_t weight = 1;
    for (std::size_t i = 0; i < around.size() && i < 4; ++i) weight *= 16;
    for (ValueId id : named_values(step, true)) uses[static_cast<std::size_t>(id)] += weight;
  });

  std::vector<Piece> pieces, placed;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    Buffer& buffer = plan.buffers[i];
    Interval in_use = buffers.of(i);
    pieces.push_back({buffer.bytes(), in_use, &buffer.offset, &buffer.in_workspace});
  }
  for (std::size_t i = 0; i < plan.scratch.size(); ++i)
    pieces.push_back({plan.scratch[i].bytes, scratch.of(i), &plan.scratch[i].offset, &plan.scratch[i].in_workspace});
  // Buffers first: tensor cores read nothing else.
  std::stable_sort(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(plan.buffers.size()),
                   [](const Piece& a, const Piece& b) { return a.bytes > b.bytes; });
  const std::int64_t room = plan.arch.shared_bytes();
  for (Piece& piece : pieces) {
    if (piece.in_use.last < 0) continue;
    *piece.in_workspace = false;
    *piece.offset = lowest(piece, placed, false);
    if (*piece.offset + piece.bytes > room) {
      *piece.in_workspace = true;
      *piece.offset = lowest(piece, placed, true);
    }
    placed.push_back(piece);
  }
  for (const Piece& piece : placed) {
    std::int64_t& end = *piece.in_workspace ? plan.workspace_bytes : plan.shared_bytes;
    end = std::max(end, *piece.offset + aligned(piece.bytes));
  }

  // Values too large for registers: those used most get what is left of shared memory.
  std::vector<std::size_t> large;
  for (std::size_t i = 0; i < plan.values.size(); ++i)
    if (plan.values[i].home == Home::workspace) large.push_back(i);
  std::map<std::string, std::int64_t> total;  // values of one name share their memory
  for (std::size_t i : large) total[plan.values[i].name] += uses[i];
  std::stable_sort(large.begin(), large.end(), [&](std::size_t a, std::size_t b) {
    return total[plan.values[a].name] > total[plan.values[b].name];
  });
  std::map<std::string, const Value*> known;
  for (std::size_t i : large) {
    Value& value = plan.values[i];
    if (total[value.name] == 0) continue;
    if (const auto found = known.find(value.name); found != known.end()) {
      value.home = found->second->home;
      value.offset = found->second->offset;
      value.vector = found->second->vector;
      continue;
    }
    known[value.name] = &value;
    const std::int64_t bytes =
        aligned(std::int64_t(value.layout.registers()) * plan.threads() * host_bytes(host_type(value.type)));
    value.home = plan.shared_bytes + bytes <= room ? Home::shared : Home::workspace;
    std::int64_t& end = value.home == Home::shared ? plan.shared_bytes : plan.workspace_bytes;
    value.offset = end;
    end += bytes;
  }
}

}  // namespace tessera::lowering
