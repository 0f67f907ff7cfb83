#include "codegen/plan/tables_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "codegen/plan/called.hpp"
#include "codegen/plan/matmul_text.hpp"
#include "codegen/plan/names.hpp"
#include "codegen/plan/remarks.hpp"

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

namespace {

void matmuls(const Plan& plan, const Role& role, const Body& steps, std::string& text) {
  for (const Step& step : steps) {
    if (const Mma* mma = step.action.as<Mma>()) text += matmul_text(plan, *mma) + '\n';
    const Wgmma* const wgmma = step.action.as<Wgmma>();
    if (wgmma && wgmma->first_k == 0) text += matmul_text(plan, role, *wgmma) + '\n';
    each_body(step, [&](const Body& inner) { matmuls(plan, role, inner, text); });
  }
}

}  // namespace

std::string to_string(const Plan& plan) {
  std::string text;
  const auto line = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
    text += '\n';
  };
  line("kernel {} for {}: {} threads, {} bytes of shared memory{}", plan.author, plan.target.arch.name(),
       plan.threads(), plan.shared_bytes,
       plan.workspace_bytes ? fmt::format(", {} bytes of workspace per CTA", plan.workspace_bytes) : "");
  for (std::size_t i = 0; i < plan.tensors.size(); i += argument_size(plan.tensors, i))
    line("parameter {}, {}: {}", argument_number(plan.tensors, i), tensor_name(plan, static_cast<int>(i)),
         class_text(plan, i));
  if (calls_functions(plan)) line("long functions are called, not inlined, to limit the compile time");
  if (plan.variant.index64) line("64-bit offsets and grid tile numbers");
  for (const Phase& phase : plan.phases)
    if (phase.schedule.raster_group)
      line("raster order: groups of {} grid tiles along the first axis", phase.schedule.raster_group);
  const bool by_grid = plan.shared_by_grid();
  for (const Phase& phase : plan.phases)
    if (phase.schedule.split_k == SplitK::cluster)
      line("split-K cluster: the CTAs of a cluster share the k-iterations of each grid tile");
    else if (phase.schedule.multicast > 1)
      line("multicast: clusters of {} CTAs with neighboring tiles load right operands for each other",
           phase.schedule.multicast);
  if (by_grid) line("stream-K: all CTAs share the k-iterations of all grid tiles");
  for (const Phase& phase : plan.phases)
    if (phase.schedule.snake_order)
      line("raster order: snake, from the last grid tiles along the first axis{}",
           phase.l2_groups_of_launch() ? ", in L2 groups along the other axes, which the launch sizes" : "");
  for (const Phase& phase : plan.phases)
    if (phase.schedule.l2_group)
      line("raster order: L2 groups of {} grid tiles along all axes but the first", phase.schedule.l2_group);
  if (plan.persistent() && !by_grid) line("persistent: a CTA processes one grid tile after another");
  for (const Buffer& buffer : plan.buffers)
    line("{}: {}[{},{}] in {} at {}{}", name_of(buffer.label), name(buffer.type), buffer.rows, buffer.columns,
         buffer.in_workspace ? "the workspace" : "shared memory", buffer.offset,
         buffer.stages > 1 ? fmt::format(", {} stages of {} bytes", buffer.stages, buffer.stage_bytes()) : "");
  for (const TensorMap& map : plan.tensor_maps) line("{}: {}", name_of(map.label), map_text(plan, map));
  for (const Pipeline& pipeline : plan.pipelines) line("{}", pipeline_text(pipeline));
  for (const Phase& phase : plan.phases)
    for (const Role& role : phase.roles) {
      if (phase.roles.size() > 1) line("{}", role_text(role));
      matmuls(plan, role, role.body, text);
    }
  std::vector<char> shown(static_cast<std::size_t>(plan.storages.size()));
  for (const Value& value : plan.values) {
    const Storage& storage = plan.storages[value.storage];
    if (storage.storage_class == StorageClass::variable ||
        std::exchange(shown[static_cast<std::size_t>(value.storage.index)], 1))
      continue;
    constexpr std::string_view storage_class[] = {"", "registers", "shared memory", "workspace"};
    line("{}: {}{} in {} {}{}: {}", name_of(plan, value.storage), name(storage.type), to_string(value.shape),
         storage.registers / storage.packed, storage_class[static_cast<int>(storage.storage_class)],
         storage.packed == 1   ? ""
         : storage.packed == 2 ? ", pairs"
                               : ", four bytes each",
         to_string(value.layout));
  }
  for (const std::string& note : notes(plan)) line("note: {}", note);
  return text;
}

}  // namespace tessera::internal::codegen
