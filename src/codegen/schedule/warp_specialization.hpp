// A warp-specialized matmul kernel: the producer role copies operands into a pipeline, by TMA or, for tensors that it
// cannot address, by its threads; consumer roles multiply them by wgmma and do the rest.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "codegen/analysis/computed_operands.hpp"
#include "codegen/schedule/layouts.hpp"

namespace tessera::internal::lowering {

/// A schedule for a warp-specialized kernel.
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

/// Candidate schedules of a kernel, the best first, later ones taking fewer registers; or why there is none, in a few
/// words, and the node that prevents it.
struct WarpSpecializedGemms {
  std::vector<WarpSpecializedGemm> candidates = {};
  std::string why_not = {};
  Id where = no_id;                ///< none: all of the kernel
  std::string why_not_split = {};  ///< why there is no split-K, though there are few CTAs
};
WarpSpecializedGemms warp_specialize(const GraphAnalysis& analysis);

/// Describes a schedule in a few words: "128x128x64 bf16 by wgmma, 2 consumer groups of 1 warp group, 5 stages".
std::string text_of(const GraphAnalysis& analysis, const WarpSpecializedGemm& how);

/// A load of a smaller tile that is broadcast to the accumulators' shape (a bias), from a place known before the loop.
bool is_read_ahead(const GraphAnalysis& analysis, const WarpSpecializedGemm& how, Id id);

/// Does the carried value `argument` start from zeros?
bool starts_from_zeros(const GraphAnalysis& analysis, Id loop, Id argument);

/// The matmuls of a warp-specialized kernel, for the passes that choose layouts and fuse.
MatmulPlans matmuls_of(const GraphAnalysis& analysis, const WarpSpecializedGemm& how);

/// Adds the roles of the phase, and the objects that they name.
void lower_roles(const GraphAnalysis& analysis, WarpSpecializedGemm how, const MatmulPlans& matmuls,
                 const Layouts& layouts, Plan& plan);

}  // namespace tessera::internal::lowering
