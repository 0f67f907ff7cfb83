// Roles, phases, and the kernel's parameters.
#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>

#include "codegen/plan/effects.hpp"
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

using Kind = KernelParameter::Kind;
using Key = std::tuple<Kind, int, int>;

/// The pointers of the tensors that threads access, and the scalars that steps read.
struct Accessed : FieldVisitor {
  const Plan& plan;
  std::set<Key> keys;
  explicit Accessed(const Plan& plan) : plan(plan) {}
  void sweep(const Sweep& sweep) {
    for (const TileAccess& read : sweep.reads) copy(read);
  }
  void access(const TileAccess& access, Use) { copy(access); }
  void copy(const TileAccess& access) {
    keys.insert({access.member ? Kind::list : Kind::pointer, access.parameter, 0});
  }
  void steps(const Body& body) {
    for (const Step& step : body) {
      visit_kind([&](const auto& kind) { each_field(kind, *this); }, step.action);
      for (const ValueId id : operands(step))
        if (const auto* scalar = std::get_if<ScalarParameter>(&plan.storage(id).known))
          keys.insert({Kind::scalar, scalar->argument, 0});
      each_body(step, [&](const Body& inner) { steps(inner); });
    }
  }
};

void check_parameters(Diagnostics& diagnostics) {
  const Plan& plan = diagnostics.plan;
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
  if (plan.logs_stamps())
    for (const Kind kind : {Kind::stamps, Kind::stamp_room}) wanted.insert({kind, 0, 0});
  if (!plan.prefetched_before_wait().empty()) wanted.insert({Kind::may_prefetch, 0, 0});
  // Parameters of tensors, scalars and the grid that no step needs may be left out.
  Accessed accessed(plan);
  for (const Phase& phase : plan.phases) {
    accessed.steps(phase.prologue);
    for (const Role& role : phase.roles) accessed.steps(role.body);
  }
  std::set<Key> needed = accessed.keys;
  std::ranges::copy_if(wanted, std::inserter(needed, needed.end()), [](const Key& key) {
    const Kind kind = std::get<0>(key);
    return kind != Kind::pointer && kind != Kind::extent && kind != Kind::stride && kind != Kind::list &&
           kind != Kind::scalar && kind != Kind::grid;
  });
  diagnostics.require(std::ranges::includes(wanted, given) && std::ranges::includes(given, needed),
                      "the kernel has {} parameters, but needs {} to {}, or different ones", given.size(),
                      needed.size(), wanted.size());
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
