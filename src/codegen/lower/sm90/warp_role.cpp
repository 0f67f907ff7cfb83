#include "codegen/lower/sm90/warp_role.hpp"

#include <fmt/format.h>

namespace tessera::internal::lowering {

WarpRole::WarpRole(const MatmulPipelines& pipelines, GraphLowering& graph, std::string_view name)
    : pipelines_(pipelines), how_(pipelines.how), analysis_(pipelines.analysis), graph_(graph), steps_(graph.steps()) {
  for (const PipelineId id : pipelines.pipelines) {
    Label label{.stem = fmt::format("at_{}", name), .number = steps_.plan.pipelines[id].label.number};
    states_.push_back(steps_.plan.states.add({.label = std::move(label), .pipeline = id}));
  }
}

void WarpRole::launch_numbers() {
  nodes([&](Id id) { return how_.launch[id] != 0; });
  if (how_.split_k == SplitK::cluster) split_k_range();
}

void WarpRole::split_k_range() {
  const Id k_iterations = steps_.node(how_.loop).in[0];
  const auto number = [&](std::string_view stem) {
    return steps_.values.add(steps_.values.label(k_iterations, stem), k_iterations, steps_.layouts.of[k_iterations]);
  };
  share_ = {number("first"), number("k_iterations"), steps_.scalar(k_iterations)};
  push(share_);
}

Iterations WarpRole::k_iterations() const {
  if (!share_.count) return graph_.iterations(how_.loop);
  return {element_of(steps_.plan, share_.count, steps_.plan.values[share_.count].layout), share_.first};
}

}  // namespace tessera::internal::lowering
