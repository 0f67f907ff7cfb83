// transposed_access: tiles that are read along one axis and written along another.
#include <deque>
#include <set>

#include "codegen/analysis/graph_analysis.hpp"

namespace tessera::internal::lowering {
namespace {

class Search {
 public:
  Search(const GraphAnalysis& analysis, int fast) : analysis_(analysis), fast_(fast) {}

  Run run(Id value) {
    Axes axes{};
    for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int>(i);
    reach(value, axes);
    for (; !left_.empty(); left_.pop_front()) visit(left_.front().first, left_.front().second);
    return found_;
  }

 private:
  using Axes = std::array<int, max_rank>;  // axes of a node -> axes of the value

  void reach(Id id, const Axes& axes) {
    if (seen_.insert(id).second) left_.emplace_back(id, axes);
  }
  void visit(Id id, const Axes& axes) {
    const Node& node = analysis_[id];
    if (is_read(node.op)) access(id, axes);
    if (is_elementwise(node.op))
      for (Id in : node.in)
        if (analysis_[in].shape == node.shape) reach(in, axes);
    if (node.op == Op::permute) {
      Axes before{};
      for (std::size_t i = 0; i < node.permutation().size(); ++i)
        before[static_cast<std::size_t>(node.permutation()[i])] = axes[i];
      reach(node.in[0], before);
    }
    for (Id user : analysis_.users[id]) {
      const Node& of_user = analysis_[user];
      if (is_write(of_user.op) && of_user.in[0] == id) access(user, axes);
      if (is_elementwise(of_user.op) && of_user.shape == node.shape) reach(user, axes);
      if (of_user.op != Op::permute) continue;
      Axes behind{};
      for (std::size_t i = 0; i < of_user.permutation().size(); ++i)
        behind[i] = axes[static_cast<std::size_t>(of_user.permutation()[i])];
      reach(user, behind);
    }
  }
  void access(Id id, const Axes& axes) {
    const GraphAccess access = analysis_.access(id);
    if (access.fast < 0 || axes[static_cast<std::size_t>(access.fast)] == fast_) return;
    if (access.vector > found_.length) found_ = {axes[static_cast<std::size_t>(access.fast)], access.vector};
  }

  const GraphAnalysis& analysis_;
  const int fast_;
  Run found_;
  std::set<Id> seen_;
  std::deque<std::pair<Id, Axes>> left_;
};

}  // namespace

Run transposed_access(const GraphAnalysis& analysis, Id value, int fast) { return Search(analysis, fast).run(value); }

}  // namespace tessera::internal::lowering
