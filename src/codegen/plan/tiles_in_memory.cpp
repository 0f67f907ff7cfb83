#include "codegen/plan/tiles_in_memory.hpp"

#include <fmt/format.h>

#include <set>

#include "codegen/plan/effects.hpp"
#include "graph/host_ops.hpp"

namespace tessera::internal::codegen {

std::string tiles_in_memory(const Plan& plan) {
  std::set<StorageId> known;
  std::int64_t most = 0;
  Location location;
  Home home{};
  Walk walk(plan);
  walk.each([&](const Role& role, const Step& step, int, const std::vector<const Interval*>&) {
    for (ValueId id : results(step)) {
      const Storage& storage = plan.storage(id);
      if (storage.home != Home::shared && storage.home != Home::workspace) continue;
      if (!known.insert(plan.values[id].storage).second) continue;
      const std::int64_t bytes = std::int64_t{storage.registers} * role.threads() * host_bytes(host_type(storage.type));
      if (bytes <= most) continue;
      most = bytes;
      location = step.location;
      home = storage.home;
    }
  });
  if (known.empty()) return {};
  const std::string others = known.size() == 1 ? "" : fmt::format(", as {} more", known.size() - 1);
  return fmt::format(
      "kernel '{}', {}:{}: a tile is too large for registers and takes {} bytes of {} for each block{}; smaller tiles "
      "are faster",
      plan.author, location.file, location.line, most,
      home == Home::shared ? "shared memory" : "workspace in global memory", others);
}

}  // namespace tessera::internal::codegen
