// A warp-specialized matmul kernel: the producer role copies operands into a pipeline, by TMA or, for tensors that it
// cannot address, by its threads; consumer roles multiply them by wgmma and do the rest.
#pragma once
#include "codegen/analysis/computed_operands.hpp"
#include "codegen/schedule/kernel_schedule.hpp"

namespace tessera::internal::lowering {

/// The decisions of a schedule for a warp-specialized matmul kernel.
struct WarpSpecializedGemm {
  std::vector<Id> matmuls;  ///< of one loop, all of the same extents
  Id loop = no_id;
  int groups = 1;                          ///< warp groups of a consumer group, which share the tile's rows
  int consumer_groups = 1;                 ///< with two, one multiplies while the other stores
  int stages = 2;                          ///< of the pipeline
  SplitK split_k = SplitK::none;           ///< of the k-iterations of the loop
  bool reads_ahead = false;                ///< loads that are is_read_ahead() are in registers before the loop
  std::vector<Id> tma_tensors;             ///< stores by TMA, if their values have the accumulators' layout
  std::set<Id> by_threads;                 ///< loads of operands that TMA does not do
  std::map<Id, ComputedOperand> computed;  ///< left operands that come from registers
  std::vector<char> ahead;   ///< by node: a number that follows from the launch, block indices and counters
  std::vector<char> launch;  ///< by node: the same from the launch alone
};

/// A load of a smaller tile that is broadcast to the accumulators' shape (a bias), from a place known before the loop.
bool is_read_ahead(const GraphAnalysis& analysis, const WarpSpecializedGemm& how, Id id);

/// Does the carried value `argument` start from zeros?
bool starts_from_zeros(const GraphAnalysis& analysis, Id loop, Id argument);

class GemmSchedule : public KernelSchedule {
 public:
  explicit GemmSchedule(WarpSpecializedGemm how) : how_(std::move(how)) {}

  std::string text(const GraphAnalysis& analysis) const override;
  std::vector<Role> roles() const override;
  MatmulPlans matmuls(const GraphAnalysis& analysis) const override;
  void lower(const GraphAnalysis& analysis, const MatmulPlans& matmuls, const Layouts& layouts,
             const std::set<Id>& left_in_memory, Plan& plan) const override;
  SplitK split_k() const override { return how_.split_k; }
  bool reads_ahead() const override { return how_.reads_ahead; }

 private:
  WarpSpecializedGemm how_;
};

}  // namespace tessera::internal::lowering
