#include "codegen/passes/plan/planning.hpp"
#include "codegen/plan/remarks.hpp"
#include "codegen/prelude/identifier.hpp"

namespace tessera::internal::plan_pass {

using namespace lowering;

// Begins the plan for the current schedule of the search, and remarks what was chosen and why.
bool schedule(Planning& planning) {
  const GraphAnalysis& analysis = planning.analysis;
  const KernelSchedule& schedule = planning.search.current();
  Plan& plan = planning.plan;
  plan = {};
  plan.kernel = kernel_identifier(analysis.graph.name);
  plan.author = analysis.graph.name;
  plan.debug = planning.debug;
  plan.location = analysis.graph.location;
  plan.target = analysis.target;
  plan.variant = analysis.variant;
  plan.tensors = analysis.graph.parameters;
  plan.reaches = planning.reaches;
  plan.functions = analysis.graph.functions;
  plan.search = planning.search.log();
  plan.phases.emplace_back().roles = schedule.roles();
  const bool specialized = schedule.is_warp_specialized();
  plan.in_sequence = planning.in_sequence;
  if (specialized)
    add_remark(plan, place_of_matmul(analysis), Remark::Status::passed, remark_kind::wgmma, "{}",
               schedule.text(analysis));
  if (const Refusal& refusal = planning.search.refusal())
    add_remark(plan, refusal.where, specialized ? Remark::Status::analysis : Remark::Status::missed, remark_kind::wgmma,
               "{}", refusal.why);
  const std::string& why_not_split = planning.search.why_not_split();
  if (first_matmul(analysis) != no_id && plan.variant.split_k != SplitK::none && schedule.split_k() == SplitK::none)
    add_remark(plan, plan.location, Remark::Status::missed, remark_kind::split_k, "{}",
               why_not_split.empty() ? "split-K needs a warp-specialized kernel, and enough registers" : why_not_split);
  return true;
}

}  // namespace tessera::internal::plan_pass
