#include "codegen/schedule/partial_sums.hpp"

#include <set>

namespace tessera::internal::lowering {

bool sums_may_stay_apart(const GraphAnalysis& analysis, Id id, Id addend) {
  const Node& node = analysis[id];
  if (analysis[addend].op == Op::mul && analysis.users[addend].size() == 1 &&
      analysis[analysis[addend].in[0]].op == Op::argument)
    addend = analysis[addend].in[0];
  const Node& argument = analysis[addend];
  if (argument.op != Op::argument || argument.position() == 0 || argument.region != node.region) return false;
  if (!analysis.in_loop(id)) return false;
  if (analysis.users[addend].size() != 1 || analysis.users[id].size() != 1) return false;
  const Region& body = analysis.graph.regions[node.region];
  return body.yields[argument.position() - 1] == id;
}

std::map<Id, PartialSums> partial_sums(const GraphAnalysis& analysis, const std::map<Id, MatmulPlan>& matmuls,
                                       const std::vector<Layout>& layouts) {
  std::map<Id, PartialSums> partial;
  std::set<RegionId> sliced;
  for (const auto& [id, plan] : matmuls) {
    const Matmul& matmul = plan.matmul;
    if (matmul.partial) partial[id] = {matmul.lanes_k, matmul.warps_k};
    if (matmul.slices() > 1) sliced.insert(analysis[id].region);
  }
  // A sum along rows that warps share would cost each iteration two barriers.
  const auto add_row_sum = [&](Id id, Id sum, Id addend) {
    const Node& node = analysis[sum];
    if (node.op != Op::sum || node.region != analysis[id].region || analysis.users[sum].size() != 1 ||
        !sums_may_stay_apart(analysis, id, addend))
      return;
    const Id carried = analysis[addend].op == Op::mul ? analysis[addend].in[0] : addend;
    for (const Id other : {sum, addend, carried})
      if (layouts[other] != layouts[id]) return;
    const Layout& summed = layouts[node.in[0]];
    const PartialSums sums{summed.bits_along(node.axis(), Place::lane), summed.bits_along(node.axis(), Place::warp)};
    if (sums.warps) partial[id] = partial[sum] = sums;
  };
  for (const RegionId loop : sliced)
    for (const Id id : analysis.order[loop]) {
      if (analysis[id].op != Op::add) continue;
      const Id left = analysis[id].in[0], right = analysis[id].in[1];
      add_row_sum(id, left, right);
      add_row_sum(id, right, left);
    }
  return partial;
}

}  // namespace tessera::internal::lowering
