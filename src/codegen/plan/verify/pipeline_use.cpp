#include "codegen/plan/verify/pipeline_use.hpp"

namespace tessera::internal::codegen {

void check_balance(Diagnostics& diagnostics, PipelineStateId id, const PipelineUse& use) {
  const Plan& plan = diagnostics.plan;
  const Pipeline& pipeline = plan.pipelines[plan.states[id].pipeline];
  const std::string name = name_of(plan, id);
  std::int64_t bytes = 0;
  for (BufferId buffer : pipeline.buffers) bytes += plan.buffers[buffer].stage_bytes();
  const int expected = pipeline.bytes > 0 ? use.acquired : 0;
  diagnostics.require(use.expected == expected, "{}: {} stages awaited empty, {} expected", name, use.acquired,
                      use.expected);
  diagnostics.require(use.loaded == expected * pipeline.bytes, "{}: {} bytes loaded, {} expected", name, use.loaded,
                      expected * pipeline.bytes);
  diagnostics.require(use.loaded + use.stored == use.acquired * bytes, "{}: {} bytes loaded and written, of {}", name,
                      use.loaded + use.stored, use.acquired * bytes);
  diagnostics.require(use.arrived == use.acquired * pipeline.full_arrivals,
                      "{}: {} threads arrive, but {} are expected", name, use.arrived,
                      use.acquired * pipeline.full_arrivals);
  diagnostics.require(use.written.empty(), "{}: threads write and do not arrive", name);
  const int used = use.acquired + use.filled;
  diagnostics.require(use.acquired == 0 || use.filled == 0, "{}: one role both fills and reads the pipeline", name);
  diagnostics.require(used == use.advanced, "{}: {} stages used, but it advances by {}", name, used, use.advanced);
  // The stage of a loop's last iteration is released after the loop.
  const int owed_inside = use.filled > 0 ? 0 : use.owed;
  diagnostics.require(use.released == use.filled + owed_inside, "{}: {} stages read, {} released", name,
                      use.filled + owed_inside, use.released);
}

}  // namespace tessera::internal::codegen
