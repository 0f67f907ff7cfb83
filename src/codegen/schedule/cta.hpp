// Schedules in which all warps of a CTA share the work: the fallback of all other patterns.
#pragma once
#include "codegen/schedule/kernel_schedule.hpp"

namespace tessera::internal::lowering {

class CtaSchedule : public KernelSchedule {
 public:
  CtaSchedule(int warps, int most_registers) : warps_(warps), most_registers_(most_registers) {}

  std::string text(const GraphAnalysis& analysis) const override;
  std::vector<Role> roles() const override;
  MatmulPlans matmuls(const GraphAnalysis& analysis) const override;
  void lower(const GraphAnalysis& analysis, const MatmulPlans& matmuls, const Layouts& layouts,
             const std::set<Id>& left_in_memory, Plan& plan) const override;

 private:
  const int warps_;           // the fewest
  const int most_registers_;  // of a thread for one value; larger ones are kept in memory
};

}  // namespace tessera::internal::lowering
