#include "codegen/passes/plan/copies.hpp"

#include "codegen/passes/plan/planning.hpp"

namespace tessera::internal::codegen {
namespace {

void choose_copies(const Plan& plan, const Role& role, Body& steps) {
  for (Step& step : steps) {
    each_body(step, [&](Body& inner) { choose_copies(plan, role, inner); });
    Fetch* const fetch = step.action.as<Fetch>();
    if (!fetch) continue;
    for (Fetch::Tile& tile : fetch->tiles) {
      const Buffer& to = plan.buffers[tile.buffer];
      const int vector = tile.access.vector;
      const int bytes = vector * info(plan.tensors[static_cast<std::size_t>(tile.access.parameter)].type).bytes;
      const int pieces = to.rows * (to.columns / vector);
      const int trips = (pieces + role.threads() - 1) / role.threads();
      const bool async = bytes >= 4 && !to.in_workspace;
      tile.copy = async ? Fetch::Copy::async : vector == 1 ? Fetch::Copy::element : Fetch::Copy::vector;
      // Copies that are not asynchronous hold registers until they arrive.
      const bool transposed = tile.access.fast + 2 == static_cast<int>(tile.access.axes.size());
      tile.unrolled = !async || (vector == 1 && !transposed) ? 2 : trips <= 16 ? 0 : 4;
    }
  }
}

}  // namespace

void choose_copies(Plan& plan) {
  for (Phase& phase : plan.phases)
    for (Role& role : phase.roles) choose_copies(plan, role, role.body);
}

}  // namespace tessera::internal::codegen

bool tessera::internal::plan_pass::copies(lowering::Planning& planning) {
  codegen::choose_copies(planning.plan);
  return true;
}
