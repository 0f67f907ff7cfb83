#include "codegen/lower/sm90/warp_role.hpp"

namespace tessera::internal::lowering {

// None of this depends on the previous launch, so it runs while that ends.
void begin_roles(Plan& plan) {
  ElectOne ahead{.threads = plan.threads(), .body = {}};
  for (int i = 0; i < plan.tensor_maps.size(); ++i) ahead.body.push_back({PrefetchMap{TensorMapId{i}}});
  Body& prologue = plan.phases.back().prologue;
  prologue = {{std::move(ahead)}};
  for (int i = 0; i < plan.pipelines.size(); ++i) prologue.push_back({InitPipeline{PipelineId{i}}});
  prologue.push_back({Barrier{}});
}

}  // namespace tessera::internal::lowering
