// A kernel whose work several roles share: one copies the operands of products into a pipeline, by sm_90's copy engine
// or, what that cannot address, by its threads; others multiply them by wgmma and do the rest.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "codegen/analysis/computed_operands.hpp"
#include "codegen/schedule/layouts.hpp"

namespace tessera::internal::lowering {

/// How the work is shared.
struct WarpSpecializedGemm {
  std::vector<Id> matmuls;  ///< of one loop, all of the same extents
  Id loop = no_id;
  int groups = 1;                          ///< warp groups of a team, which share the rows of the product's tile
  int consumer_groups = 1;                 ///< of warp groups: of two each multiplies while the other stores
  int stages = 2;                          ///< of the pipeline
  SplitK split_k = SplitK::none;           ///< of the rounds of the loop
  bool reads_ahead = false;                ///< what is_read_ahead() stays in registers from ahead of the loop on
  std::vector<Id> tma_tensors;             ///< stores that the copy engine does, if what they store lies as sums do
  std::set<Id> by_threads;                 ///< loads of operands that the copy engine does not
  std::map<Id, ComputedOperand> computed;  ///< left operands that come from registers
  std::vector<char> ahead;   ///< by node: a number that follows from the launch, block indices and counters
  std::vector<char> launch;  ///< by node: the same of the launch alone
};

/// Candidate schedules of a kernel, the best first, those behind it taking fewer registers; or why there is none, in a
/// few words, and which node is in the way.
struct WarpSpecializedGemms {
  std::vector<WarpSpecializedGemm> candidates = {};
  std::string why_not = {};
  Id where = no_id;                ///< none: all of the kernel
  std::string why_not_split = {};  ///< blocks of threads share no rounds, though they are few
};
WarpSpecializedGemms warp_specialize(const GraphAnalysis& analysis);

/// A way in a few words: "[128,128] by 64 of bf16, 2 teams of 1 warp group, 5 stages".
std::string text_of(const GraphAnalysis& analysis, const WarpSpecializedGemm& how);

/// A smaller tile that is stretched to that of the sums (a bias), of a place that is known ahead of the loop.
bool is_read_ahead(const GraphAnalysis& analysis, const WarpSpecializedGemm& how, Id id);

/// Does what the loop carries as `argument` start from zeros?
bool starts_from_zeros(const GraphAnalysis& analysis, Id loop, Id argument);

/// The products of a specialised kernel, for the passes that lay out and fuse.
MatmulPlans matmuls_of(const GraphAnalysis& analysis, const WarpSpecializedGemm& how);

/// The roles of the phase, and what they name.
void lower_roles(const GraphAnalysis& analysis, WarpSpecializedGemm how, const MatmulPlans& matmuls,
                 const Layouts& layouts, Plan& plan);

}  // namespace tessera::internal::lowering
