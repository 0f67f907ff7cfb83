#include "codegen/plan/tables_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <span>

#include "codegen/plan/names.hpp"

namespace tessera::internal::codegen {

std::string class_text(const Plan& plan, std::size_t parameter) {
  const TensorClass& tensor = plan.variant.tensors[parameter];
  const auto parameters = std::span(plan.tensors).subspan(parameter, argument_size(plan.tensors, parameter));
  std::string text = to_string(parameters);
  if (parameters[0].access == Access::scalar) return text;
  if (parameters.size() > 1) text += ", each";
  text += tensor.contiguous_axis < 0
              ? ", strided"
              : fmt::format(", contiguous along axis {}", static_cast<int>(tensor.contiguous_axis));
  text += fmt::format(", aligned to {}", static_cast<int>(tensor.alignment));
  if (tensor.contiguous_axis >= 0)
    text += fmt::format(", row length a multiple of {} bytes", static_cast<int>(tensor.row_alignment));
  return text;
}

std::string map_text(const Plan& plan, const TensorMap& map) {
  const TmaTensor& tensor = map.tensor;
  const auto rank = std::ranges::find(tensor.axes, std::int8_t{-1}) - tensor.axes.begin();
  return fmt::format(
      "boxes of [{}] along axes {} of {}, {}{}", fmt::join(tensor.box.begin(), tensor.box.begin() + rank, ","),
      fmt::join(tensor.axes.begin(), tensor.axes.begin() + rank, ","), tensor_name(plan, tensor.argument),
      map.store ? "stored" : "loaded", tensor.to_tf32 ? " as tf32" : "");
}

std::string pipeline_text(const Pipeline& pipeline) {
  return fmt::format("{}: {} stages, mbarriers at {}, full after {} arrivals{}, empty after {}",
                     name_of(pipeline.label), pipeline.stages, pipeline.offset, pipeline.full_arrivals,
                     pipeline.bytes ? fmt::format(" and {} bytes", pipeline.bytes) : "", pipeline.empty_arrivals);
}

namespace {
void add_barriers(const Role& role, const Body& steps, std::set<int>& ids) {
  for (const Step& step : steps) {
    if (const NamedBarrier* barrier = step.action.as<NamedBarrier>())
      for (int consumer_group = 0; consumer_group < role.consumer_groups; ++consumer_group)
        ids.insert(barrier->id + consumer_group);
    if (const OrderedBarrier* turn = step.action.as<OrderedBarrier>())
      for (int group = 0; group < role.warps / 4; ++group) ids.insert(turn->id + group);
    each_body(step, [&](const Body& inner) { add_barriers(role, inner, ids); });
  }
}
}  // namespace

std::string role_text(const Role& role) {
  std::set<int> barriers;
  for (int consumer_group = 0; role.barrier && consumer_group < role.consumer_groups; ++consumer_group)
    barriers.insert(role.barrier + consumer_group);
  add_barriers(role, role.body, barriers);
  std::string text = fmt::format("role {}: warps {} to {}", role.name, role.first_warp, role.end_warp() - 1);
  if (role.consumer_groups > 1) text += fmt::format(", {} consumer groups", role.consumer_groups);
  if (role.registers) text += fmt::format(", {} registers per thread", role.registers);
  if (!barriers.empty()) text += fmt::format(", named barriers {}", fmt::join(barriers, ","));
  return text;
}

}  // namespace tessera::internal::codegen
