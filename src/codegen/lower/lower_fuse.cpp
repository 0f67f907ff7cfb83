#include "codegen/lower/lower_fuse.hpp"

#include <set>

namespace tessera::internal::lowering {
namespace {

class Fuser {
 public:
  Fuser(const GraphAnalysis& analysis, const std::map<Id, MatmulPlan>& matmuls, const Layouts& layouts)
      : analysis_(analysis), matmuls_(matmuls), layouts_(layouts) {
    fusion_.absorbed.resize(analysis.graph.nodes.size());
    fusion_.root.resize(analysis.graph.nodes.size(), no_id);
  }

  // Visits the users of a node before the node, except loops that yield it: they take no expression.
  Fusion run() {
    const std::vector<Id> ids = by_number(analysis_);
    for (auto id = ids.rbegin(); id != ids.rend(); ++id) fusion_.absorbed[*id] = is_absorbed(*id);
    for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
      const Id root = fusion_.root[*id] = find_root(*id);
      leaves_[root] = leaves_with(root, *id);
    }
    return std::move(fusion_);
  }

 private:
  const Node& node(Id id) const { return analysis_[id]; }

  bool is_absorbed(Id id) const {
    const Node& at = node(id);
    if (at.op != Op::load && at.op != Op::cast && at.op != Op::reshape && at.op != Op::permute) return false;
    bool all = !analysis_.users[id].empty() && !at.ordered;
    for (Id user : analysis_.users[id]) {
      // A load's operands are indices: they are not read from the buffer.
      const bool passed_on = fusion_.absorbed[user] && node(user).op != Op::load;
      all &= passed_on || reads_from_buffer(user, id);
    }
    return all;
  }
  bool reads_from_buffer(Id user, Id operand) const {
    if (node(user).op != Op::mma) return false;
    const MatmulPlan& plan = matmuls_.at(user);
    if (plan.matmul.kind == MatmulKind::gemv || node(user).in[2] == operand) return false;
    return (node(user).in[0] != operand || plan.a.load != no_id) &&
           (node(user).in[1] != operand || plan.b.load != no_id);
  }

  Id find_root(Id id) const {
    if (!is_elementwise(node(id).op) || fusion_.absorbed[id] || node(id).shape.rank() == 0) return id;
    Id root = no_id;
    for (Id user : analysis_.users[id]) {
      const Id next = takes_expression(user, id) ? fusion_.root[user] : no_id;
      if (next == no_id || (root != no_id && root != next)) return id;
      root = next;
    }
    if (root == no_id || analysis_.storage_class[root] != analysis_.storage_class[id]) return id;
    const Sweep sweep = sweep_of(analysis_, layouts_, root);
    const Layout& layout = layouts_.of[id];
    const bool same = layout == sweep.layout.of_operand(node(id).shape, sweep.shape) &&
                      layout.registers() == sweep.layout.registers();
    return same && leaves_with(root, id).size() <= most_leaves ? root : id;
  }

  // Values that the step of a root names once a node is computed in it. All of them, or the addresses of those that the
  // step reads, are in registers until it is done.
  static constexpr std::size_t most_leaves = 16;
  std::set<Id> leaves_with(Id root, Id id) const {
    std::set<Id> leaves;
    if (const auto found = leaves_.find(root); found != leaves_.end()) leaves = found->second;
    leaves.erase(id);
    for (Id in : node(id).in) {
      while (node(in).op == Op::broadcast) in = node(in).in[0];
      if (node(in).shape.rank() > 0 && node(in).op != Op::constant && node(in).op != Op::iota) leaves.insert(in);
    }
    return leaves;
  }
  bool takes_expression(Id user, Id operand) const {
    const Node& at = node(user);
    if (fusion_.absorbed[user]) return false;
    if (is_elementwise(at.op)) return at.shape.rank() > 0;
    const auto only_in = [&](std::size_t slot) {
      for (std::size_t i = 0; i < at.in.size(); ++i)
        if ((at.in[i] == operand) != (i == slot)) return false;
      return true;
    };
    if (is_along_lines(at.op) || is_scan(at.op)) return true;
    if (at.op == Op::take_along_axis) return only_in(1);
    if (is_write(at.op)) return only_in(0);
    return at.op == Op::mma && only_in(2);
  }

  const GraphAnalysis& analysis_;
  const std::map<Id, MatmulPlan>& matmuls_;
  const Layouts& layouts_;
  Fusion fusion_;
  std::map<Id, std::set<Id>> leaves_;  // by root, so far
};

}  // namespace

Fusion fuse(const GraphAnalysis& analysis, const std::map<Id, MatmulPlan>& matmuls, const Layouts& layouts) {
  return Fuser(analysis, matmuls, layouts).run();
}

std::vector<Id> by_number(const GraphAnalysis& analysis) {
  std::size_t live = 0;
  for (const auto& region : analysis.order) live += region.size();
  std::vector<Id> ids(live);
  for (const auto& region : analysis.order)
    for (Id id : region) ids[static_cast<std::size_t>(analysis.number[id])] = id;
  return ids;
}

Sweep sweep_of(const GraphAnalysis& analysis, const Layouts& layouts, Id id) {
  const Node& node = analysis[id];
  const bool of_operand = is_along_lines(node.op) || is_write(node.op);
  const Id of = of_operand ? node.in[0] : id;
  Sweep sweep;
  sweep.shape = analysis[of].shape;
  sweep.layout = layouts.of[of];
  return sweep;
}

}  // namespace tessera::internal::lowering
