#include "codegen/lower/graph_lowering.hpp"
#include "codegen/schedule/cta.hpp"

namespace tessera::internal::lowering {

// Values that turn out to need memory do so for the next attempt, which starts from the same plan.
void CtaSchedule::lower(const GraphAnalysis& analysis, const MatmulPlans& matmuls, const Layouts& layouts,
                        const std::set<Id>& left_in_memory, Plan& plan) const {
  const Plan before = plan;
  InMemory in_memory{.values = {}, .left = left_in_memory};
  for (;;) {
    Role role{.name = "all", .warps = layouts.warps, .body = {}};
    if (plan.in_sequence) role.barrier = plan.allocate_named_barriers(1);  // it may have fewer threads than the CTA
    GraphLowering graph(analysis, matmuls.plans, layouts, most_registers_, in_memory, {}, plan, role);
    graph.region(0);
    const std::set<Id> more = graph.must_be_in_memory();
    const std::size_t known = in_memory.values.size();
    in_memory.values.insert(more.begin(), more.end());
    if (in_memory.values.size() == known) {
      plan.phases.back().roles.push_back(std::move(role));
      return;
    }
    plan = before;
  }
}

}  // namespace tessera::internal::lowering
