// Atomics: of the threads that hold copies of an element, one changes it.
#include "codegen/lower/lower_atomic.hpp"

#include <algorithm>

#include "codegen/lower/lower_exchange.hpp"

namespace tessera::internal::lowering {
namespace {

bool has_copies(const Layout& layout, int warps) {
  return layout.lane_copies() != 0 || layout.warp_copies(warps) != 0 || layout.warps() < warps;
}

}  // namespace

void atomic(Steps& steps, Id id) {
  const Node& at = steps.node(id);
  TileAccess access = steps.access_of(id);
  SweepBuilder builder(steps, sweep_of(steps.analysis, steps.layouts, id), id);
  if (by_elements(at.op)) steps.set_elements(access, id, builder);
  std::optional<Operand> expected;
  if (view_operand(at.op) > 1) expected = builder.operand(at.in[1]);
  Atomic step{.op = at_position(at.op),
              .order = at.order(),
              .scope = at.scope(),
              .out = {},
              .expected = std::move(expected),
              .sweep = builder.express(at.in[0]).take(),
              .access = std::move(access)};
  if (steps.analysis.users[id].empty()) return steps.push(id, std::move(step));
  const Layout layout = step.sweep.layout;
  if (layout == steps.layouts.of[id] && !has_copies(layout, steps.threads / 32)) {
    step.out = steps.values.add(id);
    return steps.push(id, std::move(step));
  }
  const ValueId first = steps.values.add(steps.values.label(id, name(step.op), "_first"), id, layout);
  step.out = first;
  steps.push(id, std::move(step));
  spread(steps, first, id);
}

}  // namespace tessera::internal::lowering
