// Roles, phases, and the kernel's parameters.
#include <set>
#include <tuple>

#include "codegen/plan/verify.hpp"

namespace tessera::internal::codegen {
namespace {

void check_phases(Findings& findings) {
  const Plan& plan = findings.plan;
  int axes = 0;
  findings.require(!plan.phases.empty(), "the plan has no phase");
  for (const Phase& phase : plan.phases) {
    findings.require(phase.first_axis == axes && phase.axes >= 0, "a phase's grid begins at axis {}, not {}",
                     phase.first_axis, axes);
    axes = phase.first_axis + phase.axes;
    findings.require(phase.schedule.group >= 0 && (phase.schedule.group == 0 || phase.axes >= 2),
                     "blocks run in groups of {} in a grid of {} axes", phase.schedule.group, phase.axes);
    findings.require(phase.schedule.section == 0 || !phase.schedule.to_and_fro,
                     "blocks run to and fro, whose sections a launch chooses, and in sections of {}",
                     phase.schedule.section);
    findings.require(!phase.roles.empty(), "a phase has no role");
    int warp = 0;
    for (const Role& role : phase.roles) {
      findings.require(role.first_warp == warp, "role {} begins at warp {}, not {}", role.name, role.first_warp, warp);
      findings.require(role.warps >= 1 && role.teams >= 1, "role {} has {} teams of {} warps", role.name, role.teams,
                       role.warps);
      findings.require(role.barrier >= 0 && role.barrier + role.teams <= 16, "there is no barrier {}",
                       role.barrier + role.teams - 1);
      warp = role.end_warp();
    }
    findings.require(warp <= 32, "{} warps in a block", warp);
    findings.require(phase.roles.size() != 1 || warp * 32 == plan.threads(),
                     "role {}, the only one of its phase, has {} warps of {}", phase.roles.front().name, warp,
                     plan.threads() / 32);
    findings.require(plan.phases.size() == 1 || plan.progress < Progress::placed ||
                         phase.schedule.kind == Schedule::Kind::persistent,
                     "of several phases one's blocks are those of the launch");
  }
  findings.require(plan.blocks >= 1 && plan.blocks * plan.threads() <= 2048, "{} blocks of {} threads at a time",
                   plan.blocks, plan.threads());
}

void check_parameters(Findings& findings) {
  using Kind = KernelParameter::Kind;
  const Plan& plan = findings.plan;
  using Key = std::tuple<Kind, int, int>;
  std::set<Key> given, wanted;
  for (const KernelParameter& p : plan.parameters)
    findings.require(given.insert({p.kind, p.argument, p.axis}).second, "a parameter is passed twice");
  for (int i = 0; i < plan.tensor_maps.size(); ++i) wanted.insert({Kind::tensor_map, i, 0});
  for (int i = 0; i < static_cast<int>(plan.tensors.size()); ++i) {
    const Parameter& tensor = plan.tensors[static_cast<std::size_t>(i)];
    if (tensor.access == Access::scalar) {
      wanted.insert({Kind::scalar, i, 0});
      continue;
    }
    wanted.insert({Kind::pointer, i, 0});
    for (int axis = 0; axis < tensor.rank; ++axis) {
      wanted.insert({Kind::extent, i, axis});
      if (axis != plan.variant.tensors[static_cast<std::size_t>(i)].unit_axis) wanted.insert({Kind::stride, i, axis});
    }
  }
  for (const Phase& phase : plan.phases)
    for (int axis = 0; axis < phase.axes; ++axis) wanted.insert({Kind::grid, 0, phase.first_axis + axis});
  for (std::size_t i = 0; i < plan.phases.size(); ++i)
    if (plan.phases[i].schedule.kind != Schedule::Kind::grid) wanted.insert({Kind::blocks, static_cast<int>(i), 0});
  for (const Phase& phase : plan.phases)
    if (phase.sections_of_launch()) wanted.insert({Kind::section, 0, phase.first_axis});
  if (plan.workspace_bytes > 0) wanted.insert({Kind::workspace, 0, 0});
  if (plan.shared_by_grid())
    for (const Kind kind : {Kind::flags, Kind::abreast}) wanted.insert({kind, 0, 0});
  if (plan.tells_host()) wanted.insert({Kind::reports, 0, 0});
  if (!plan.brought_ahead().empty()) wanted.insert({Kind::ahead, 0, 0});
  findings.require(given == wanted, "the kernel has {} parameters, and needs {} or others", given.size(),
                   wanted.size());
  findings.require(plan.workspace_bytes == 0 || plan.persistent(),
                   "a workspace is a block's in flight, and blocks are not persistent");
}

}  // namespace

void check_launch(Findings& findings) {
  findings.about(nullptr);
  check_phases(findings);
  if (findings.plan.progress == Progress::complete) check_parameters(findings);
}

}  // namespace tessera::internal::codegen
