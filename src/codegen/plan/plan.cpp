#include "codegen/plan/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>

namespace tessera::internal::codegen {

std::int64_t Buffer::offset_of(int row, int column) const {
  const int per_chunk = 16 / info(type).bytes, within = column % per_chunk * info(type).bytes;
  if (form == SharedForm::panels) {
    const int chunk = column % panel_columns() / per_chunk;
    return column / panel_columns() * panel_bytes() + std::int64_t{row} * 128 + (chunk ^ (row % 8)) * 16 + within;
  }
  // Must match element_offset() of the prelude.
  const int chunk = (column / per_chunk) ^ (row / (8 / permuted()) & (permuted() - 1));
  return (std::int64_t{row} * chunks() + chunk) * 16 + within;
}

MatrixDescriptor descriptor_of(const Buffer& buffer, bool k_major) {
  // K-major: two chunks of a row. MN-major, which only 16-bit types have: 16 rows of a panel.
  const int depth = wgmma_depth(buffer.type);
  if (k_major) return {.leading = 1, .stride = 64, .k_step = depth * info(buffer.type).bytes / 16};
  return {.leading = static_cast<int>(buffer.panel_bytes() / 16), .stride = 64, .k_step = depth * 128 / 16};
}

int Plan::threads() const {
  int warps = 0;
  for (const Phase& phase : phases)
    for (const Role& role : phase.roles) warps = std::max(warps, role.end_warp());
  return warps * 32;
}

bool Plan::in_pipeline(BufferId id) const {
  return std::any_of(pipelines.begin(), pipelines.end(), [&](const Pipeline& pipeline) {
    return std::find(pipeline.buffers.begin(), pipeline.buffers.end(), id) != pipeline.buffers.end();
  });
}

bool Plan::persistent() const {
  return std::any_of(phases.begin(), phases.end(),
                     [](const Phase& phase) { return phase.schedule.kind != Schedule::Kind::grid; });
}

bool Plan::shared_by_grid() const {
  return std::ranges::any_of(phases, [](const Phase& phase) { return phase.schedule.split_k == SplitK::stream_k; });
}

namespace {

// Does `holds` return true for any step of the kind?
template <class Kind, class Holds>
bool some(const Body& body, const Holds& holds) {
  return std::ranges::any_of(body, [&](const Step& step) {
    const Kind* const one = step.action.as<Kind>();
    bool any = one && holds(*one);
    each_body(step, [&](const Body& inner) { any |= some<Kind>(inner, holds); });
    return any;
  });
}
template <class Kind, class Holds>
bool some(const Plan& plan, const Holds& holds) {
  return std::ranges::any_of(plan.phases, [&](const Phase& phase) {
    return std::ranges::any_of(phase.roles, [&](const Role& role) { return some<Kind>(role.body, holds); });
  });
}

}  // namespace

bool Plan::tells_host() const {
  return some<HostReport>(*this, [](const HostReport&) { return true; });
}

int Plan::allocate_named_barriers(int count) {
  const int first = named_barriers + 1;
  named_barriers += count;
  return first;
}

bool Plan::learns_of_others() const {
  return some<Atomic>(*this, [](const Atomic& atomic) { return acquires(atomic.order); });
}

bool Plan::waits_for_previous() const {
  const auto waits = [](const Body& body) {
    return std::ranges::any_of(body, [](const Step& step) { return step.action.is<GridDependencyWait>(); });
  };
  const Phase& first = phases.front();
  return waits(first.prologue) || (!first.roles.empty() && waits(first.roles.front().body));
}

bool Plan::is_in_registers(ValueId id) const {
  const StorageClass storage_class = storage(id).storage_class;
  return storage_class == StorageClass::registers || storage_class == StorageClass::variable;
}

std::vector<int> Plan::prefetched_before_wait() const {
  std::set<int> tensors;
  const std::function<void(const Body&, bool)> look = [&](const Body& body, bool ahead) {
    for (const Step& step : body) {
      const TmaLoad* const load = step.action.as<TmaLoad>();
      if (load && ahead) tensors.insert(tensor_maps[load->map].tensor.argument);
      each_body(step, [&](const Body& inner) { look(inner, ahead || step.action.is<PrefetchBeforeWait>()); });
    }
  };
  for (const Phase& phase : phases)
    for (const Role& role : phase.roles) {
      look(role.body, false);
      bool before = false;  // between the two waits
      for (const Step& step : role.body) {
        if (const auto* const wait = step.action.as<GridDependencyWait>()) before = wait->unless_may_prefetch;
        if (!before) continue;
        if (const Load* const load = step.action.as<Load>()) tensors.insert(load->access.parameter);
        if (const Fetch* const fetch = step.action.as<Fetch>())
          for (const Fetch::Tile& tile : fetch->tiles) tensors.insert(tile.access.parameter);
      }
    }
  return {tensors.begin(), tensors.end()};
}

}  // namespace tessera::internal::codegen
