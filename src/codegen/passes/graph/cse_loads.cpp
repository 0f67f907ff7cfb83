// cse_loads: two loads from one place of an InOut, with no write to it in between, become one. Pure nodes need no such
// pass: they are hash-consed when they are made.
#include <map>

#include "codegen/passes.hpp"
#include "graph/rewrite.hpp"

namespace tessera::internal {
namespace {

class CommonReads final : public Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  Id rewrite(const Node& node, std::span<const Id> in) override {
    if (is_write(node.op)) known_.clear();
    if (is_read(node.op) && node.ordered) return read(node, in);
    return Rewriter::rewrite(node, in);
  }

  Id read(const Node& node, std::span<const Id> in) {
    // A value that was read in another region may have been overwritten since, or may not be visible here.
    const RegionId here = builder().open_region();
    if (here != region_) known_.clear();
    region_ = here;
    std::vector<std::int64_t> key{static_cast<std::int64_t>(node.op), node.bits()};
    key.insert(key.end(), node.shape.begin(), node.shape.end());
    key.push_back(-1);
    key.insert(key.end(), in.begin(), in.end());
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    return known_[key] = Rewriter::rewrite(node, in);
  }

  std::map<std::vector<std::int64_t>, Id> known_;
  RegionId region_ = 0;
};

}  // namespace

Graph cse_loads(const Graph& graph) { return CommonReads(graph).run(); }

}  // namespace tessera::internal
