// Pipelines, tensor maps, and panels, independently of the steps that use them.
#include <algorithm>
#include <array>

#include "codegen/plan/verify/verify.hpp"

namespace tessera::internal::codegen {

void check_pipelines(Diagnostics& diagnostics) {
  const Plan& plan = diagnostics.plan;
  for (int i = 0; i < plan.pipelines.size(); ++i) {
    const Pipeline& pipeline = plan.pipelines[PipelineId{i}];
    const std::string name = name_of(plan, PipelineId{i});
    std::int64_t bytes = 0;
    for (BufferId id : pipeline.buffers) {
      const Buffer& buffer = plan.buffers[id];
      diagnostics.require(buffer.stages == pipeline.stages, "{} has {} stages, but {} has {}", name_of(plan, id),
                          buffer.stages, name, pipeline.stages);
      diagnostics.require(!buffer.in_workspace, "{} of {} is not in shared memory", name_of(plan, id), name);
      bytes += buffer.stage_bytes();
    }
    diagnostics.require(pipeline.bytes <= bytes, "a stage of {} has {} bytes, but {} are expected", name, bytes,
                        pipeline.bytes);
    for (const ClippedRows& rows : pipeline.clipped) {
      const bool is_axis = rows.argument >= 0 && rows.argument < std::ssize(plan.tensors) && rows.axis >= 0 &&
                           rows.axis < plan.tensors[static_cast<std::size_t>(rows.argument)].rank;
      diagnostics.require(is_axis && std::ranges::count(pipeline.buffers, rows.buffer) == 1,
                          "rows of {} are clipped along an unknown axis or buffer", name);
    }
    diagnostics.require(pipeline.stages >= 1 && pipeline.full_arrivals >= 1 && pipeline.empty_arrivals >= 1,
                        "{} has no stages or no arrivals", name);
  }
  for (int i = 0; i < plan.tensor_maps.size(); ++i) {
    const TensorMap& map = plan.tensor_maps[TensorMapId{i}];
    const std::string name = name_of(plan, TensorMapId{i});
    const bool is_one = map.tensor.argument >= 0 && map.tensor.argument < static_cast<int>(plan.tensors.size()) &&
                        plan.tensors[static_cast<std::size_t>(map.tensor.argument)].access != Access::scalar;
    diagnostics.require(is_one, "{} has no tensor", name);
    if (!is_one) continue;
    const Parameter& tensor = plan.tensors[static_cast<std::size_t>(map.tensor.argument)];
    const TensorClass& known = plan.variant.tensors[static_cast<std::size_t>(map.tensor.argument)];
    diagnostics.require(known.tma_addressable && map.tensor.axes[0] == known.contiguous_axis,
                        "TMA cannot address {} like this", tensor_name(plan, map.tensor.argument));
    std::array<std::int8_t, 5> axes = map.tensor.axes;
    std::ranges::sort(axes);
    for (int axis = 0; axis < tensor.rank; ++axis)
      diagnostics.require(tensor.rank <= 5 && axes[static_cast<std::size_t>(5 - tensor.rank + axis)] == axis,
                          "axis {} of {} is not in its tensor map", axis, tensor_name(plan, map.tensor.argument));
    diagnostics.require(tensor.rank == 5 || (tensor.rank < 5 && axes[static_cast<std::size_t>(4 - tensor.rank)] == -1),
                        "{} has more axes than its tensor", name);
    diagnostics.require(!map.store || tensor.access != Access::in, "{} is written",
                        tensor_name(plan, map.tensor.argument));
    diagnostics.require(!map.tensor.to_tf32 || (tensor.type == ElementType::f32 && !map.store),
                        "{} converts {} to tf32, but only loads of f32 can be converted", name,
                        tessera::internal::name(tensor.type));
    for (int extent : map.tensor.box)
      diagnostics.require(extent >= 1 && extent <= 256, "a box extent of {} in {}", extent, name);
    diagnostics.require(map.tensor.box[0] * info(tensor.type).bytes <= 128,
                        "rows of {} are longer than the 128-byte swizzle", name);
  }
  for (int i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[BufferId{i}];
    diagnostics.require(
        buffer.form != SharedForm::panels || (buffer.columns % buffer.panel_columns() == 0 && buffer.rows % 8 == 0),
        "{}: [{},{}] does not consist of 128-byte panels and groups of 8 rows", name_of(plan, BufferId{i}), buffer.rows,
        buffer.columns);
  }
}

void check_prologue(Diagnostics& diagnostics, const Phase& phase) {
  std::set<PipelineId> made;
  bool fenced = true, seen = true;
  int waits = 0;
  const auto by_one_thread = [&](const Step& step) {
    if (const InitPipeline* init = step.action.as<InitPipeline>()) {
      diagnostics.require(made.insert(init->pipeline).second, "{} is initialized twice",
                          name_of(diagnostics.plan, init->pipeline));
      fenced = seen = false;
    }
    fenced |= step.action.is<MbarrierInitFence>();
  };
  for (const Step& step : phase.prologue) {
    if (const ElectOne* elected = step.action.as<ElectOne>(); elected && elected->threads == diagnostics.plan.threads())
      for (const Step& inner : elected->body) by_one_thread(inner);
    seen |= step.action.is<Barrier>() || step.action.is<ClusterBarrier>();
    waits += step.action.is<GridDependencyWait>();
  }
  diagnostics.require(fenced, "pipelines are initialized, but no fence follows");
  diagnostics.require(waits <= 1, "the prologue has {} grid dependency waits", waits);
  diagnostics.require(waits == 0 || &phase == diagnostics.plan.phases.data(),
                      "the grid dependency wait is not in the first phase");
  diagnostics.require(seen, "pipelines are initialized, but no barrier follows");
  for (int i = 0; i < diagnostics.plan.pipelines.size(); ++i)
    diagnostics.require(made.contains(PipelineId{i}) || diagnostics.plan.phases.size() > 1, "{} is not initialized",
                        name_of(diagnostics.plan, PipelineId{i}));
}

}  // namespace tessera::internal::codegen
