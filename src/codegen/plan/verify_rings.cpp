// Rings, tensors as the copy engine knows them, and panels: what roles name, whatever they do with it.
#include <algorithm>
#include <array>

#include "codegen/plan/verify.hpp"

namespace tessera::internal::codegen {

void check_rings(Findings& findings) {
  const Plan& plan = findings.plan;
  for (int i = 0; i < plan.rings.size(); ++i) {
    const Ring& ring = plan.rings[RingId{i}];
    const std::string name = name_of(plan, RingId{i});
    std::int64_t bytes = 0;
    for (BufferId id : ring.buffers) {
      const Buffer& buffer = plan.buffers[id];
      findings.require(buffer.stages == ring.stages, "{} has {} stages, and {} {}", name_of(plan, id), buffer.stages,
                       name, ring.stages);
      findings.require(!buffer.in_workspace, "{} of {} is not in shared memory", name_of(plan, id), name);
      bytes += buffer.stage_bytes();
    }
    findings.require(ring.bytes <= bytes, "a stage of {} has {} bytes, and {} are expected", name, bytes, ring.bytes);
    for (const ClippedRows& rows : ring.clipped) {
      const bool is_axis = rows.argument >= 0 && rows.argument < std::ssize(plan.tensors) && rows.axis >= 0 &&
                           rows.axis < plan.tensors[static_cast<std::size_t>(rows.argument)].rank;
      findings.require(is_axis && std::ranges::count(ring.buffers, rows.buffer) == 1,
                       "rows of {} are clipped, and which is not known", name);
    }
    findings.require(ring.stages >= 1 && ring.full_arrivals >= 1 && ring.empty_arrivals >= 1, "{} has no arrivals",
                     name);
  }
  for (int i = 0; i < plan.tensor_maps.size(); ++i) {
    const TensorMap& map = plan.tensor_maps[TensorMapId{i}];
    const std::string name = name_of(plan, TensorMapId{i});
    const bool is_one = map.tensor.argument >= 0 && map.tensor.argument < static_cast<int>(plan.tensors.size()) &&
                        plan.tensors[static_cast<std::size_t>(map.tensor.argument)].access != Access::scalar;
    findings.require(is_one, "{} is of no tensor", name);
    if (!is_one) continue;
    const Parameter& tensor = plan.tensors[static_cast<std::size_t>(map.tensor.argument)];
    const TensorClass& known = plan.variant.tensors[static_cast<std::size_t>(map.tensor.argument)];
    findings.require(known.boxable && map.tensor.axes[0] == known.unit_axis, "the copy engine cannot address {} so",
                     tensor_name(plan, map.tensor.argument));
    std::array<std::int8_t, 5> axes = map.tensor.axes;
    std::ranges::sort(axes);
    for (int axis = 0; axis < tensor.rank; ++axis)
      findings.require(tensor.rank <= 5 && axes[static_cast<std::size_t>(5 - tensor.rank + axis)] == axis,
                       "axis {} of {} is not in its map", axis, tensor_name(plan, map.tensor.argument));
    findings.require(tensor.rank == 5 || (tensor.rank < 5 && axes[static_cast<std::size_t>(4 - tensor.rank)] == -1),
                     "{} has more axes than its tensor", name);
    findings.require(!map.store || tensor.access != Access::in, "{} is written",
                     tensor_name(plan, map.tensor.argument));
    findings.require(!map.tensor.rounds || (tensor.type == ElementType::f32 && !map.store),
                     "{} rounds {}, and f32 that is loaded becomes tf32", name, tessera::internal::name(tensor.type));
    for (int extent : map.tensor.box)
      findings.require(extent >= 1 && extent <= 256, "a box of {} elements in {}", extent, name);
    findings.require(map.tensor.box[0] * info(tensor.type).bytes <= 128,
                     "rows of {} are longer than the swizzle's 128 bytes", name);
  }
  for (int i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[BufferId{i}];
    findings.require(
        buffer.form != SharedForm::panels || (buffer.columns % buffer.panel_columns() == 0 && buffer.rows % 8 == 0),
        "{}: [{},{}] is not made of panels of 128 bytes and groups of 8 rows", name_of(plan, BufferId{i}), buffer.rows,
        buffer.columns);
  }
}

void check_prologue(Findings& findings, const Phase& phase) {
  std::set<RingId> made;
  bool seen = true;
  int waits = 0;
  for (const Step& step : phase.prologue) {
    if (const InitRing* init = step.action.as<InitRing>()) {
      findings.require(made.insert(init->ring).second, "{} is made twice", name_of(findings.plan, init->ring));
      seen = false;
    }
    seen |= step.action.is<Barrier>();
    waits += step.action.is<WaitForPrevious>();
  }
  findings.require(waits <= 1, "a launch waits {} times for the one before", waits);
  findings.require(waits == 0 || &phase == findings.plan.phases.data(),
                   "the first phase did not wait for the launch before");
  findings.require(seen, "rings are made, and no barrier follows");
  for (int i = 0; i < findings.plan.rings.size(); ++i)
    findings.require(made.contains(RingId{i}) || findings.plan.phases.size() > 1, "{} is not made",
                     name_of(findings.plan, RingId{i}));
}

}  // namespace tessera::internal::codegen
