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
      if (at.op == Op::broadcast || ((inside || is_of_indices(id)) && is_elementwise(at.op))) {
        if (at.op != Op::broadcast) result_.nodes.insert(id);
        open.insert(open.end(), at.in.begin(), at.in.end());
      } else if (const Id half = repeated(analysis_.graph, id); inside && half != no_id) {
        repeats(id, half);
      } else if (inside && at.shape == node(operand_).shape && at.op != Op::constant && at.op != Op::iota) {
        tile(id);
      } else {
        value(id);
      }
    }
    for (ReadTile& tile : result_.tiles)
      if (!tile.repeated) tile.read_as = read_as(tile.tile);
    return std::move(result_);
  }

 private:
  const Node& node(Id id) const { return analysis_[id]; }

  // Is it computed from indices alone, for this expression alone? Then it need not be in registers during the loop.
  bool is_of_indices(Id id) const {
    const auto is_index = [&](Id in) { return node(in).op == Op::iota || node(in).op == Op::constant; };
    const auto is_here = [&](Id user) { return result_.nodes.contains(user); };
    return node(id).shape.rank() > 0 && std::ranges::all_of(analysis_.users[id], is_here) &&
           std::ranges::all_of(node(id).in, [&](Id in) {
             return is_index(in) || (is_elementwise(node(in).op) && std::ranges::all_of(node(in).in, is_index));
           });
  }
  // Each step that reads 8-bit integers can give them as reals at once.
  Id read_as(Id tile) const {
    const ElementType type = node(tile).type;
    const bool bytes = type == ElementType::i8 || type == ElementType::u8;
    if (!bytes || analysis_.users[tile].size() != 1) return tile;
    const Id user = analysis_.users[tile][0];
    const bool to_real = node(user).op == Op::cast && info(node(user).type).kind == ElementKind::real &&
                         host_type(node(user).type) == HostType::f32 && !is_fp8(node(user).type);
    return to_real && result_.nodes.contains(user) ? user : tile;
  }
  // A load as large as the operand, perhaps transposed.
  void tile(Id id) {
    if (find_source(analysis_.graph, id).load == no_id) return stop(id);
    result_.tiles.push_back({.tile = id, .read_as = id});
    to_load(id);
  }
  void repeats(Id id, Id half) {
    if (find_source(analysis_.graph, half).load == no_id) return stop(half);
    result_.tiles.push_back({.tile = half, .read_as = id, .repeated = true});
    for (Id at = id; at != half; at = node(at).in[0]) result_.nodes.insert(at);
    to_load(half);
  }
  void to_load(Id id) {
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

Id repeated(const Graph& graph, Id id) {
  const Node& whole = graph[id];
  if (whole.op != Op::reshape || whole.shape.rank() != 2) return no_id;
  const Node& twice = graph[whole.in[0]];
  if (twice.op != Op::broadcast || twice.shape != Shape{whole.shape[0], whole.shape[1] / 2, 2}) return no_id;
  const Node& apart = graph[twice.in[0]];
  const bool halves = apart.op == Op::reshape && apart.shape == Shape{whole.shape[0], whole.shape[1] / 2, 1} &&
                      graph[apart.in[0]].shape == Shape{whole.shape[0], whole.shape[1] / 2};
  return halves ? apart.in[0] : no_id;
}

ComputedOperand computed_operand(const GraphAnalysis& analysis, Id operand, RegionId loop) {
  return Follower(analysis, operand, loop).run();
}

}  // namespace tessera::internal::lowering
