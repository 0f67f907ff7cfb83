#include <set>

#include "codegen/passes/plan/planning.hpp"
#include "codegen/passes/plan/remarks.hpp"
#include "codegen/plan/names.hpp"
#include "codegen/plan/remarks.hpp"

namespace tessera::internal::lowering {
namespace {

// Tensor cores read only shared memory: a matmul with a buffer elsewhere uses other instructions (simt), which do not
// take operands from registers. Returns the matmuls that have such an operand.
std::set<Id> leave_tensor_cores(Body& steps, const Plan& plan) {
  std::set<Id> left;
  for (Step& step : steps) {
    each_body(step, [&](Body& inner) { left.merge(leave_tensor_cores(inner, plan)); });
    Mma* const mma = step.action.as<Mma>();
    if (!mma || mma->matmul.kind != MatmulKind::mma_sync) continue;
    Matmul& matmul = mma->matmul;
    for (const MatmulOperand* operand : {&matmul.a, &matmul.b}) {
      if (!operand->buffer || !plan.buffers[operand->buffer].in_workspace) continue;
      matmul.kind = MatmulKind::simt;
      if (matmul.reads_ahead) matmul.unrolled = plan.target.unrolled_k;
      matmul.reads_ahead = false;
      mma->fetching = {};
      mma->holds_last = false;
      if (matmul.a.value) left.insert(step.node);
    }
  }
  return left;
}

}  // namespace

}  // namespace tessera::internal::lowering

namespace tessera::internal::plan_pass {

using namespace lowering;

bool tensor_cores(Planning& planning) {
  Plan& plan = planning.plan;
  std::set<Id> left;
  for (Phase& phase : plan.phases)
    for (Role& role : phase.roles) left.merge(leave_tensor_cores(role.body, plan));
  for (int i = 0; i < plan.buffers.size(); ++i)
    if (plan.buffers[BufferId{i}].in_workspace)
      add_remark(plan, location_of(planning.analysis, plan.buffers[BufferId{i}].label), Remark::Status::missed,
                 remark_kind::shared, "{} does not fit into shared memory", name_of(plan, BufferId{i}));
  if (left.empty()) return true;
  planning.left_in_memory.insert(left.begin(), left.end());
  planning.search.restart();
  return false;
}

}  // namespace tessera::internal::plan_pass
