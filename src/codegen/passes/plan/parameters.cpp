#include "codegen/passes/plan/parameters.hpp"

#include "codegen/analysis/parameter_uses.hpp"
#include "codegen/passes/plan/planning.hpp"

namespace tessera::internal::codegen {

void set_parameters(Plan& plan) {
  using Kind = KernelParameter::Kind;
  const ParameterKeys uses = parameter_uses(plan);
  const auto add = [&](Kind kind, int argument, int axis) {
    if (uses.contains({kind, argument, axis})) plan.parameters.push_back({kind, argument, axis});
  };
  for (int i = 0; i < plan.tensor_maps.size(); ++i) plan.parameters.push_back({Kind::tensor_map, i, 0});
  for (int i = 0; i < static_cast<int>(plan.tensors.size()); ++i) {
    const Parameter& parameter = plan.tensors[static_cast<std::size_t>(i)];
    if (parameter.access == Access::scalar) {
      add(Kind::scalar, i, 0);
      continue;
    }
    if (parameter.list > 0) {
      add(Kind::list, i, 0);
      continue;
    }
    add(Kind::pointer, i, 0);
    for (int axis = 0; axis < parameter.rank; ++axis) add(Kind::extent, i, axis);
    for (int axis = 0; axis < parameter.rank; ++axis) add(Kind::stride, i, axis);
  }
  for (const Phase& phase : plan.phases)
    for (int axis = 0; axis < phase.axes; ++axis) add(Kind::grid, 0, phase.first_axis + axis);
  for (std::size_t i = 0; i < plan.phases.size(); ++i)
    if (plan.phases[i].schedule.kind != Schedule::Kind::grid)
      plan.parameters.push_back({Kind::blocks, static_cast<int>(i), 0});
  for (const Phase& phase : plan.phases)
    if (phase.l2_groups_of_launch()) plan.parameters.push_back({Kind::l2_group, 0, phase.first_axis});
  if (plan.workspace_bytes > 0) plan.parameters.push_back({Kind::workspace, 0, 0});
  if (plan.shared_by_grid())
    for (const Kind kind : {Kind::flags, Kind::lockstep_rows}) plan.parameters.push_back({kind, 0, 0});
  if (plan.tells_host()) plan.parameters.push_back({Kind::reports, 0, 0});
  if (plan.logs_stamps())
    for (const Kind kind : {Kind::stamps, Kind::stamp_room}) plan.parameters.push_back({kind, 0, 0});
  if (!plan.prefetched_before_wait().empty()) plan.parameters.push_back({Kind::may_prefetch, 0, 0});
  plan.progress = Progress::complete;
}

}  // namespace tessera::internal::codegen

bool tessera::internal::plan_pass::parameters(lowering::Planning& planning) {
  codegen::set_parameters(planning.plan);
  return true;
}
