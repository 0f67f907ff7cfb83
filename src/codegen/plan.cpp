#include "codegen/plan.hpp"

#include <algorithm>

namespace tessera::codegen {

int Plan::threads() const {
  int warps = 0;
  for (const Phase& phase : phases)
    for (const Role& role : phase.roles) warps = std::max(warps, role.first_warp + role.warps);
  return warps * 32;
}

bool Plan::persistent() const {
  return std::any_of(phases.begin(), phases.end(),
                     [](const Phase& phase) { return phase.schedule.kind == Schedule::Kind::persistent; });
}

}  // namespace tessera::codegen
