// Products that feed one another in a loop, as attention's: scores of one product become, after some ops in registers,
// the left operand of the next. One role copies tiles by sm_90's copy engine into a pipeline for each; warp groups,
// each with rows of its own, multiply by wgmma and do the rest.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "codegen/schedule/layouts.hpp"

namespace tessera::internal::lowering {

/// A tile that products read from shared memory.
struct FusedMatmulTile {
  Id load = no_id;
  int rows = 0, columns = 0;  ///< axes of the load, whatever a product takes them for
  bool held = false;          ///< read ahead of the loop, for all of its rounds; else anew in each
  int stages = 1;             ///< of its pipeline
  Id slice_extent = no_id;    ///< of the slice that its rows are of, if they are; beyond are zeros
};

/// A tile as an operand.
struct FusedMatmulOperand {
  int tile = -1;        ///< among the tiles; none: it comes from registers
  bool k_major = true;  ///< rows of its buffer run along k
};

struct FusedMatmulMma {
  Id id = no_id;
  FusedMatmulOperand left, right;
};

/// How the work is shared.
struct FusedMatmul {
  Id loop = no_id;
  int groups = 1;  ///< warp groups, which share the rows of all products
  std::vector<FusedMatmulTile> tiles;
  std::vector<FusedMatmulMma> matmuls;  ///< in order
  /// The second of two products is multiplied together with the first of the next round, and what becomes of that is
  /// computed meanwhile.
  bool overlaps = false;
  bool has_iteration = false;  ///< each block has at least one
  /// And with those of the last round the first product of the next block is.
  bool runs_on = false;
  std::vector<char> ahead;  ///< by node: what the role that copies needs, to know which tiles, and computes itself
};

/// Candidate schedules for the fused matmul of a kernel, the best first; or why there is none, in a few words, and
/// which node is in the way.
struct FusedMatmuls {
  std::vector<FusedMatmul> candidates = {};
  std::string why_not = {};
  Id where = no_id;
};
FusedMatmuls match_fused_matmul(const GraphAnalysis& analysis);

/// What is decided, in a few words.
std::string text_of(const GraphAnalysis& analysis, const FusedMatmul& fused);

/// The products of a chain, for the passes that lay out and fuse.
MatmulPlans matmuls_of(const GraphAnalysis& analysis, const FusedMatmul& fused);

/// The roles of the phase, and what they name.
void lower_roles(const GraphAnalysis& analysis, const FusedMatmul& fused, const MatmulPlans& matmuls,
                 const Layouts& layouts, Plan& plan);

}  // namespace tessera::internal::lowering
