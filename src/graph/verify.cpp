#include <fmt/format.h>

#include "graph/error.hpp"
#include "graph/graph.hpp"
#include "graph/infer.hpp"

namespace tessera {
namespace {

// What a graph is, rule by rule. A pass that breaks one is found at once, by name.
class Verifier {
 public:
  Verifier(const Graph& graph, std::string_view after) : graph_(graph), after_(after) {}

  void run() {
    rule(!graph_.regions.empty() && graph_.regions[0].kind == RegionKind::kernel, "region 0 is the kernel's body");
    owner_.assign(graph_.regions.size(), no_id);
    listed_.assign(graph_.nodes.size(), 0);
    for (const Region& region : graph_.regions)
      for (const auto* list : {&region.effects, &region.arguments})
        for (Id id : *list) {
          rule(id < graph_.nodes.size(), "a region lists nodes");
          ++listed_[id];
        }
    for (id_ = 0; id_ < graph_.nodes.size(); ++id_) node(graph_[id_]);
    id_ = no_id;
    for (RegionId region = 0; region < graph_.regions.size(); ++region) check(region);
    for (Id id : graph_.grid)
      rule(graph_[id].type == ElementType::i32 && graph_[id].shape.rank() == 0 && graph_[id].uniform,
           "the grid is made of i32 values that follow from extents and scalars");
  }

 private:
  void rule(bool holds, std::string_view text) const {
    if (holds) return;
    const std::string place = id_ == no_id ? "" : fmt::format(" at node {} ({})", id_, name(graph_[id_].op));
    throw InternalError(fmt::format("kernel '{}', after {}{}: broken rule: {}", graph_.name, after_, place, text));
  }

  bool encloses(RegionId outer, RegionId inner) const {
    while (inner > outer) inner = graph_.regions[inner].parent;
    return inner == outer;
  }

  const Parameter& parameter(Id view) const {
    return graph_.parameters[static_cast<std::size_t>(view_parameter(graph_, view))];
  }

  void node(const Node& node) {
    RegionId innermost = 0;
    for (Id in : node.in) {
      rule(in < id_, "operands come before the node");
      rule(encloses(graph_[in].region, node.region), "operands belong to the node's region or one around it");
      rule(!is_effect(graph_[in].op) || (node.op == Op::result && graph_[in].op == Op::loop), "an effect has no value");
      rule(!is_view(graph_[in].op) || view_operand(node.op) >= 0, "only memory ops take views");
      innermost = std::max(innermost, graph_[in].region);
    }
    if (!node.ordered && node.op != Op::argument)
      rule(node.region == innermost, "a pure node belongs to the innermost region of its operands");
    rule(node.region < graph_.regions.size(), "a node belongs to a region");
    counts(node);
    if (node.op == Op::tensor || node.op == Op::scalar)
      rule(node.attr[0] >= 0 && node.attr[0] < static_cast<std::int64_t>(graph_.parameters.size()),
           "a tensor or a scalar names a parameter");
    if (node.op == Op::slice || node.op == Op::permute_view || node.op == Op::extent)
      rule(is_view(graph_[node.in[0]].op), "views are made of views");
    rule(node.uniform == is_uniform(graph_, node), "a node knows whether the host can compute it");
    try {
      if (!is_view(node.op)) check_tile(node.op, node.shape);
      check_types(graph_, node.op, node.type, node.in);
      rule(infer_shape(graph_, node.op, node.in, node.attr, node.shape) == node.shape,
           "the shape follows from the operands");
    } catch (const Mismatch& mismatch) {
      rule(false, mismatch.what());
    }
    order(node);
    special(node);
  }

  void counts(const Node& node) const {
    std::size_t in = 0, attr = 0;
    const std::size_t view_rank =
        view_operand(node.op) >= 0 && node.in.size() > static_cast<std::size_t>(view_operand(node.op))
            ? static_cast<std::size_t>(graph_[node.in[static_cast<std::size_t>(view_operand(node.op))]].shape.rank())
            : 0;
    if (is_unary(node.op))
      in = 1;
    else if (is_binary(node.op))
      in = 2;
    else if (is_reduction(node.op))
      in = attr = 1;
    else
      switch (node.op) {
        case Op::select:
        case Op::mma:
          in = 3;
          break;
        case Op::cast:
        case Op::reshape:
        case Op::broadcast:
          in = 1;
          break;
        case Op::constant:
        case Op::iota:
        case Op::block:
        case Op::scalar:
        case Op::tensor:
        case Op::argument:
          attr = 1;
          break;
        case Op::slice:
          in = 3;
          attr = 1;
          break;
        case Op::extent:
        case Op::argmax:
        case Op::cumsum:
        case Op::result:
        case Op::branch:
        case Op::require:
          in = attr = 1;
          break;
        case Op::permute_view:
        case Op::permute:
          in = 1;
          attr = static_cast<std::size_t>(node.shape.rank());
          break;
        case Op::load:
          in = 1 + view_rank;
          attr = 1;
          break;
        case Op::gather:
          in = 1 + view_rank;
          attr = 1;
          break;
        case Op::store:
        case Op::atomic_add:
        case Op::scatter:
          in = 2 + view_rank;
          break;
        case Op::concat:
          in = std::max<std::size_t>(node.in.size(), 1);
          attr = 1;
          break;
        default:
          in = std::max<std::size_t>(node.in.size(), 1);
          attr = 1;
          break;  // loop
      }
    rule(node.in.size() == in && node.attr.size() == attr, "an op has the operands and attributes of ops.def");
  }

  void order(const Node& node) const {
    rule(listed_[id_] == (node.ordered || node.op == Op::argument ? 1 : 0),
         "effects and arguments, and only they, are listed once in their region");
    const bool read = node.op == Op::load || node.op == Op::gather;
    const bool of_in_out = read && parameter(node.in[0]).access == Access::in_out;
    rule(node.ordered == (is_effect(node.op) || of_in_out),
         "effects and reads of an InOut are ordered, nothing else is");
  }

  void special(const Node& node) {
    const auto scalar = [&] {
      return graph_.parameters[static_cast<std::size_t>(node.attr[0])].access == Access::scalar;
    };
    const auto known = [&] {
      return node.attr[0] >= 0 && node.attr[0] < static_cast<std::int64_t>(graph_.parameters.size());
    };
    switch (node.op) {
      case Op::scalar:
      case Op::tensor:
        rule(known() && scalar() == (node.op == Op::scalar),
             "a scalar reads a scalar parameter, a tensor a tensor parameter");
        rule(node.type == graph_.parameters[static_cast<std::size_t>(node.attr[0])].type,
             "its type is the parameter's");
        break;
      case Op::extent:
        rule(graph_[node.in[0]].op == Op::tensor, "extents are asked of tensors, not of views of them");
        break;
      case Op::block:
        rule(node.attr[0] >= 0 && node.attr[0] < static_cast<std::int64_t>(graph_.grid.size()),
             "a block index names an axis of the grid");
        break;
      case Op::load:
      case Op::gather:
        rule(parameter(node.in[0]).access != Access::out, "an Out is not read");
        break;
      case Op::store:
      case Op::scatter:
        rule(parameter(node.in[1]).access != Access::in, "an In is not written");
        break;
      case Op::atomic_add:
        rule(parameter(node.in[1]).access == Access::in_out, "atomics work on an InOut");
        break;
      case Op::require:
        rule(node.attr[0] >= 0 && node.attr[0] < static_cast<std::int64_t>(graph_.texts.size()),
             "require names a text");
        rule(graph_[node.in[0]].uniform && node.region == 0,
             "require states what holds of extents and scalars, for the whole launch");
        break;
      case Op::loop:
      case Op::branch:
        owned(node);
        break;
      case Op::result:
        rule(graph_[node.in[0]].op == Op::loop && node.attr[0] >= 0 &&
                 node.attr[0] + 1 < static_cast<std::int64_t>(graph_[node.in[0]].in.size()),
             "a result is one of a loop's carried values");
        rule(agree(node, graph_[graph_[node.in[0]].in[static_cast<std::size_t>(node.attr[0]) + 1]]),
             "a result has the type of the carried value");
        break;
      default:
        break;
    }
  }

  static bool agree(const Node& a, const Node& b) { return a.type == b.type && a.shape == b.shape; }

  void owned(const Node& node) {
    const auto region = static_cast<RegionId>(node.attr[0]);
    rule(region > 0 && region < graph_.regions.size() && owner_[region] == no_id, "a region has one owner");
    owner_[region] = id_;
    const Region& body = graph_.regions[region];
    rule(body.parent == node.region, "a region stands in the region of its owner");
    rule((body.kind == RegionKind::loop) == (node.op == Op::loop), "loops own loops, branches own branches");
    if (node.op == Op::branch) return rule(body.arguments.empty() && body.yields.empty(), "a branch carries nothing");
    rule(body.arguments.size() == node.in.size() && body.yields.size() + 1 == node.in.size(),
         "a loop has an initial value, an argument and a yield for each carried value");
    for (std::size_t k = 1; k < node.in.size(); ++k) {
      const Node &initial = graph_[node.in[k]], &argument = graph_[body.arguments[k]],
                 &yield = graph_[body.yields[k - 1]];
      rule(agree(initial, argument) && agree(initial, yield), "a carried value keeps its type and shape");
      rule(encloses(yield.region, region), "a yield is visible at the end of its loop");
    }
  }

  void check(RegionId region) const {
    const Region& body = graph_.regions[region];
    rule(region == 0 || owner_[region] != no_id, "every region has an owner");
    rule(region == 0 || body.parent < region, "a region comes after the one around it");
    for (std::size_t k = 0; k < body.arguments.size(); ++k) {
      const Node& argument = graph_[body.arguments[k]];
      rule(argument.op == Op::argument && argument.region == region && argument.attr[0] == static_cast<std::int64_t>(k),
           "arguments know their loop and position");
    }
    for (Id id : body.effects)
      rule(graph_[id].ordered && graph_[id].region == region, "a region lists its own effects");
    rule(std::is_sorted(body.effects.begin(), body.effects.end()), "effects are listed in program order");
  }

  const Graph& graph_;
  std::string_view after_;
  Id id_ = no_id;
  std::vector<Id> owner_;
  std::vector<int> listed_;
};

}  // namespace

void verify(const Graph& graph, std::string_view after) { Verifier(graph, after).run(); }

}  // namespace tessera
