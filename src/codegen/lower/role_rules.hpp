// The rules by which one of several roles lowers its part of a graph.
#pragma once
#include <set>
#include <vector>

#include "tessera/graph/graph.hpp"

namespace tessera::internal::lowering {

struct RoleRules {
  std::vector<char> skipped = {};     ///< by node: it is not the role's; empty: all are
  bool stages_operands = true;        ///< copies the operands of matmuls to shared memory (if not, the role does)
  std::set<Id> read_where_used = {};  ///< loads that are part of the steps that use them
  std::set<Id> uninitialized = {};    ///< carried values that the first iteration overwrites
  Id accumulators = no_id;            ///< a matmul: stores of tiles held as its result may go part by part
};

}  // namespace tessera::internal::lowering
