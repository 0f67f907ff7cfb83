#include "codegen/schedule/kernel_schedule.hpp"

namespace tessera::internal::lowering {

std::span<const SchedulePattern> schedule_patterns() {
  static constexpr SchedulePattern table[] = {
#define SCHEDULE(name, what) {#name, what, schedule_pattern::name},
#include "codegen/schedules.def"
  };
  return table;
}

std::string why_no_roles(const GraphAnalysis& analysis) {
  // Does a CTA learn what another one did, by an old value or by a memory order?
  const auto learns = [&](Id id) {
    return is_atomic(analysis[id].op) && (!analysis.users[id].empty() || analysis[id].order() != MemoryOrder::relaxed);
  };
  bool learns_of_others = false;
  for (Id id = 0; id < analysis.graph.nodes.size(); ++id) {
    if (info(analysis[id].op).role == OpRole::report) return "the kernel checks or prints";
    learns_of_others |= analysis.live(id) && learns(id);
  }
  return learns_of_others ? "the kernel uses results or memory orders of atomics" : "";
}

}  // namespace tessera::internal::lowering
