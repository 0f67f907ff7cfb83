#include "codegen/analysis/computed_operands.hpp"

namespace tessera::internal::lowering {
namespace {

class Follower {
 public:
  Follower(const GraphAnalysis& analysis, Id operand, RegionId loop)
      : analysis_(analysis), operand_(operand), loop_(loop) {}

  // An explicit stack: an expression may be a hundred thousand ops deep.
  ComputedOperand run() {
    std::vector<Id> open{operand_};
    std::set<Id> seen;
    while (!open.empty() && result_.why_not.empty()) {
      const Id id = open.back();
      open.pop_back();
      if (!seen.insert(id).second) continue;
      const Node& at = node(id);
      const bool inside = analysis_.in_region(id, loop_) && at.shape.rank() > 0;
      if (at.op == Op::broadcast || (inside && is_elementwise(at.op))) {
        if (at.op != Op::broadcast) result_.nodes.insert(id);
        open.insert(open.end(), at.in.begin(), at.in.end());
      } else if (inside && at.shape == node(operand_).shape && at.op != Op::constant && at.op != Op::iota) {
        tile(id);
      } else {
        value(id);
      }
    }
    return std::move(result_);
  }

 private:
  const Node& node(Id id) const { return analysis_[id]; }

  // A load as large as the operand, perhaps transposed.
  void tile(Id id) {
    if (find_source(analysis_.graph, id).load == no_id) return stop(id);
    result_.tiles.push_back(id);
    for (;; id = node(id).in[0]) {
      result_.nodes.insert(id);
      if (node(id).op == Op::load) return;
    }
  }
  // A row, a column or a number, which a step of its own computes; or a value from before the loop.
  void value(Id id) {
    result_.values.insert(id);
    const Node& at = node(id);
    if (!analysis_.in_region(id, loop_) || at.shape.rank() == 0 || at.op == Op::constant || at.op == Op::iota) return;
    Id from = id;
    while (is_seen_through(analysis_.graph, node(from))) result_.values.insert(from = node(from).in[0]);
    if (analysis_.in_region(from, loop_) && (node(from).op != Op::load || node(from).ordered)) stop(from);
  }
  void stop(Id id) {
    result_.why_not = why_no_source(analysis_.graph, id);
    result_.where = end_of_source(analysis_.graph, id);
  }

  const GraphAnalysis& analysis_;
  const Id operand_;
  const RegionId loop_;
  ComputedOperand result_;
};

}  // namespace

ComputedOperand computed_operand(const GraphAnalysis& analysis, Id operand, RegionId loop) {
  return Follower(analysis, operand, loop).run();
}

}  // namespace tessera::internal::lowering
