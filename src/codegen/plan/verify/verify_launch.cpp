// Roles, phases, and the kernel's parameters.
#include <set>
#include <tuple>

#include "codegen/plan/verify/verify.hpp"

namespace tessera::internal::codegen {
namespace {

void check_phases(Diagnostics& diagnostics) {
  const Plan& plan = diagnostics.plan;
  int axes = 0;
  diagnostics.require(!plan.phases.empty(), "the plan has no phase");
  diagnostics.require(plan.named_barriers <= 15, "{} named barriers; a CTA has 15", plan.named_barriers);
  for (const Phase& phase : plan.phases) {
    diagnostics.require(phase.first_axis == axes && phase.axes >= 0, "the grid of a phase begins at axis {}, not {}",
                        phase.first_axis, axes);
    axes = phase.first_axis + phase.axes;
    diagnostics.require(phase.schedule.raster_group >= 0 && (phase.schedule.raster_group == 0 || phase.axes >= 2),
                        "a raster group of {} in a grid of {} axes", phase.schedule.raster_group, phase.axes);
    diagnostics.require(phase.schedule.l2_group == 0 || !phase.schedule.snake_order,
                        "snake order, whose L2 groups the launch chooses, together with L2 groups of {}",
                        phase.schedule.l2_group);
    diagnostics.require(!phase.roles.empty(), "a phase has no role");
    int warp = 0;
    for (const Role& role : phase.roles) {
      diagnostics.require(role.first_warp == warp, "role {} begins at warp {}, not {}", role.name, role.first_warp,
                          warp);
      diagnostics.require(role.warps >= 1 && role.consumer_groups >= 1, "role {} has {} consumer groups of {} warps",
                          role.name, role.consumer_groups, role.warps);
      diagnostics.require(role.barrier >= 0 && role.barrier + role.consumer_groups <= 16,
                          "there is no named barrier {}", role.barrier + role.consumer_groups - 1);
      warp = role.end_warp();
    }
    diagnostics.require(warp <= 32, "{} warps in a CTA", warp);
    diagnostics.require(phase.roles.size() != 1 || warp * 32 == plan.threads(),
                        "role {}, the only one of its phase, has {} of {} warps", phase.roles.front().name, warp,
                        plan.threads() / 32);
    diagnostics.require(plan.phases.size() == 1 || plan.progress < Progress::placed ||
                            phase.schedule.kind == Schedule::Kind::persistent,
                        "a plan has several phases, and one of them is not persistent");
  }
  diagnostics.require(plan.blocks >= 1 && plan.blocks * plan.threads() <= 2048,
                      "{} CTAs of {} threads on a multiprocessor", plan.blocks, plan.threads());
}

void check_parameters(Diagnostics& diagnostics) {
  using Kind = KernelParameter::Kind;
  const Plan& plan = diagnostics.plan;
  using Key = std::tuple<Kind, int, int>;
  std::set<Key> given, wanted;
  for (const KernelParameter& p : plan.parameters)
    diagnostics.require(given.insert({p.kind, p.argument, p.axis}).second, "a parameter is passed twice");
  for (int i = 0; i < plan.tensor_maps.size(); ++i) wanted.insert({Kind::tensor_map, i, 0});
  for (int i = 0; i < static_cast<int>(plan.tensors.size()); ++i) {
    const Parameter& tensor = plan.tensors[static_cast<std::size_t>(i)];
    if (tensor.access == Access::scalar) {
      wanted.insert({Kind::scalar, i, 0});
      continue;
    }
    if (tensor.list > 0) {  // the list has all of its tensors
      if (tensors_of_list(plan.tensors, static_cast<std::size_t>(i)) > 0) wanted.insert({Kind::list, i, 0});
      continue;
    }
    wanted.insert({Kind::pointer, i, 0});
    for (int axis = 0; axis < tensor.rank; ++axis) {
      wanted.insert({Kind::extent, i, axis});
      if (axis != plan.variant.tensors[static_cast<std::size_t>(i)].contiguous_axis)
        wanted.insert({Kind::stride, i, axis});
    }
  }
  for (const Phase& phase : plan.phases)
    for (int axis = 0; axis < phase.axes; ++axis) wanted.insert({Kind::grid, 0, phase.first_axis + axis});
  for (std::size_t i = 0; i < plan.phases.size(); ++i)
    if (plan.phases[i].schedule.kind != Schedule::Kind::grid) wanted.insert({Kind::blocks, static_cast<int>(i), 0});
  for (const Phase& phase : plan.phases)
    if (phase.l2_groups_of_launch()) wanted.insert({Kind::l2_group, 0, phase.first_axis});
  if (plan.workspace_bytes > 0) wanted.insert({Kind::workspace, 0, 0});
  if (plan.shared_by_grid())
    for (const Kind kind : {Kind::flags, Kind::lockstep_rows}) wanted.insert({kind, 0, 0});
  if (plan.tells_host()) wanted.insert({Kind::reports, 0, 0});
  if (!plan.prefetched_before_wait().empty()) wanted.insert({Kind::may_prefetch, 0, 0});
  diagnostics.require(given == wanted, "the kernel has {} parameters, but needs {}, or different ones", given.size(),
                      wanted.size());
  diagnostics.require(plan.workspace_bytes == 0 || plan.persistent(),
                      "a workspace belongs to a running CTA, but CTAs are not persistent");
}

}  // namespace

void check_launch(Diagnostics& diagnostics) {
  diagnostics.about(nullptr);
  check_phases(diagnostics);
  if (diagnostics.plan.progress == Progress::complete) check_parameters(diagnostics);
}

}  // namespace tessera::internal::codegen
