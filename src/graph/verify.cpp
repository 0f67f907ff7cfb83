#include <fmt/format.h>

#include "graph/infer.hpp"
#include "graph/reports.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal {
namespace {

// The rules that a graph obeys. A pass that breaks one is found immediately, by name.
class Verifier {
 public:
  Verifier(const Graph& graph, std::string_view after) : graph_(graph), after_(after) {}

  void run() {
    rule(!graph_.regions.empty() && graph_.regions[0].kind == RegionKind::kernel, "region 0 is the kernel's body");
    lists();
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
           "the grid consists of i32 values computed from extents and scalars");
  }

 private:
  void rule(bool holds, std::string_view text) const {
    if (holds) return;
    const std::string place = id_ == no_id ? "" : fmt::format(" at node {} ({})", id_, name(graph_[id_].op));
    throw InternalError(fmt::format("kernel '{}', after {}{}: broken rule: {}", graph_.name, after_, place, text));
  }

  void lists() const {
    const std::vector<Parameter>& parameters = graph_.parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Parameter& at = parameters[i];
      if (at.list == 0) continue;
      const bool is_last = at.list == 1;
      rule(is_last ? i > 0 && parameters[i - 1].list == 2 : i + 1 < parameters.size(), "a list ends with its number");
      rule(is_last ? at == Parameter{Access::scalar, ElementType::i32, 0, false, 1}
                   : at.access != Access::scalar && !at.optional && parameters[i + 1].list == at.list - 1,
           "a list consists of tensors, then of their number, an i32");
      if (at.list <= 2) continue;
      Parameter next = parameters[i + 1];
      next.list = at.list;
      rule(next == at, "the tensors of a list have one access, type and rank");
    }
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
      rule(is_view(graph_[in].op) || has_value(graph_[in].op) || operand_of(node.op, OperandKind::loop) >= 0,
           "an effect has no value, unless it is atomic");
      rule(!is_view(graph_[in].op) || view_operand(node.op) >= 0, "only memory ops take views");
      innermost = std::max(innermost, graph_[in].region);
    }
    if (!node.ordered && node.op != Op::argument)
      rule(node.region == innermost, "a pure node belongs to the innermost region of its operands");
    rule(node.region < graph_.regions.size(), "a node belongs to a region");
    counts(node);
    attribute(node);
    if (const int view = view_operand(node.op); view >= 0)
      rule(is_view(graph_[node.in[static_cast<std::size_t>(view)]].op),
           "a view is taken from a view, and memory ops access views");
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
    const OperandKinds& kinds = info(node.op).in;
    std::size_t in = kinds.count;
    if (const int last = repeated_operand(node.op); last >= 0) {
      const auto view = static_cast<std::size_t>(std::max(view_operand(node.op), 0));
      const auto rank = node.in.size() > view ? static_cast<std::size_t>(graph_[node.in[view]].shape.rank()) : 0;
      switch (kinds.kind[last]) {
        case OperandKind::indices:
        case OperandKind::tiles:
          in += rank - 1;
          break;
        case OperandKind::further_indices:
          in += rank - 2;
          break;
        default:
          in = std::max(in - 1, node.in.size());
      }
    }
    const Attribute attribute = info(node.op).attribute;
    const bool of_each_axis = attribute == Attribute::axes || attribute == Attribute::steps;
    const std::size_t attr = attribute == Attribute::none      ? 0
                             : of_each_axis                    ? static_cast<std::size_t>(node.shape.rank())
                             : attribute == Attribute::windows ? 3
                             : attribute == Attribute::scan || attribute == Attribute::stepped ||
                                     attribute == Attribute::order || attribute == Attribute::sorted
                                 ? 2
                                 : 1;
    rule(node.in.size() == in && node.attr.size() == attr, "an op has the operands and attributes of ops.def");
  }

  // Checks that the object an attribute numbers exists. Axes are checked with the shape, positions with the loop.
  void attribute(const Node& node) {
    const auto names_one_of = [&](const auto& all) {
      return node.attr[0] >= 0 && node.attr[0] < static_cast<std::int64_t>(all.size());
    };
    switch (info(node.op).attribute) {
      case Attribute::parameter: {
        rule(names_one_of(graph_.parameters), "a tensor or a scalar names a parameter");
        const Parameter& parameter = graph_.parameters[node.parameter()];
        rule((parameter.access == Access::scalar) == (node.op == Op::scalar),
             "a scalar reads a scalar parameter, a tensor a tensor parameter");
        rule(node.op == Op::scalar || (node.op == Op::member) == (parameter.list > 0),
             "a tensor of a list is reached through the list, no other tensor is");
        rule(node.op != Op::member || tensors_of_list(graph_.parameters, node.parameter()) > 0,
             "a list is named by its first parameter");
        return rule(node.type == parameter.type, "its type is the parameter's");
      }
      case Attribute::number:
        return rule(node.type != ElementType::pred || node.attr[0] == 0 || node.attr[0] == 1,
                    "a number of pred is 0 or 1");
      case Attribute::grid_axis:
        return rule(names_one_of(graph_.grid), "a block index names an axis of the grid");
      case Attribute::scan:
        return rule(node.attr[1] >= 0 && node.attr[1] < 4, "a scan is reversed, exclusive, both or neither");
      case Attribute::order:
        return rule(node.attr[0] >= 0 && node.attr[0] < 4 && node.attr[1] >= 0 && node.attr[1] < 3,
                    "an atomic has an order and a scope");
      case Attribute::sorted:
        return rule(node.attr[1] >= 0 && node.attr[1] < 2, "a sort is ascending or descending");
      case Attribute::text:
        return rule(names_one_of(graph_.texts), "require names a text");
      case Attribute::function: {
        rule(names_one_of(graph_.functions), "a custom op names a function");
        const CustomFunction& function = graph_.functions[node.function()];
        return rule(node.type == function.type && std::ssize(node.in) == function.operands,
                    "a custom op has the type and the operands of its function");
      }
      case Attribute::region:
        return owned(node);
      default:
        return;
    }
  }

  void order(const Node& node) const {
    rule(listed_[id_] == (node.ordered || node.op == Op::argument ? 1 : 0),
         "effects and arguments, and only they, are listed once in their region");
    const auto view = static_cast<std::size_t>(std::max(view_operand(node.op), 0));
    const bool of_in_out = is_read(node.op) && parameter(node.in[view]).access == Access::in_out;
    rule(node.ordered == (is_effect(node.op) || of_in_out),
         "effects and reads of an InOut are ordered, nothing else is");
  }

  void special(const Node& node) {
    const auto access = [&] { return parameter(node.in[static_cast<std::size_t>(view_operand(node.op))]).access; };
    switch (info(node.op).role) {
      case OpRole::read:
        return rule(access() != Access::out, "an Out is not read");
      case OpRole::write:
        return rule(access() != Access::in, "an In is not written");
      case OpRole::atomic:
        return rule(access() == Access::in_out, "atomics work on an InOut");
      case OpRole::report:
        if (node.op == Op::print)
          rule(print_pieces(graph_.texts[node.text()]).size() == node.in.size() + 1,
               "a print has a value for each {} of its text");
        break;
      case OpRole::claim:
        return rule(graph_[node.in[0]].uniform && node.region == 0,
                    "require takes a condition on extents and scalars, for the whole launch");
      default:
        break;
    }
    if (node.op == Op::extent)
      rule(is_base_view(graph_[node.in[0]].op), "extents are those of tensors, not of views of them");
    if (node.op == Op::result) {
      const Node& loop = graph_[node.in[0]];
      rule(has_region(loop.op) && node.attr[0] >= 0 && node.attr[0] + 1 < static_cast<std::int64_t>(loop.in.size()),
           "a result is one of a loop's carried values");
      rule(agree(node, graph_[loop.in[node.position() + 1]]), "a result has the type of the carried value");
    }
  }

  static bool agree(const Node& a, const Node& b) { return a.type == b.type && a.shape == b.shape; }

  void owned(const Node& node) {
    const RegionId region = node.body();
    rule(region > 0 && region < graph_.regions.size() && owner_[region] == no_id, "a region has one owner");
    owner_[region] = id_;
    const Region& body = graph_.regions[region];
    rule(body.parent == node.region, "the parent of a region is the region of its owner");
    rule((body.kind == RegionKind::loop) == (node.op == Op::loop) &&
             (body.kind == RegionKind::branch) == (node.op == Op::branch),
         "loops own loops, branches own branches");
    const std::size_t further = node.op == Op::repeat ? 1 : 0;
    rule(body.arguments.size() == node.in.size() && body.yields.size() + 1 == node.in.size() + further,
         "a loop has an initial value, an argument and a yield for each carried value");
    if (further) {
      const Node& again = graph_[body.yields.back()];
      rule(agree(again, graph_[node.in[0]]), "a repeat yields whether it continues");
      rule(encloses(again.region, region), "a yield is visible at the end of its loop");
    }
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
    rule(body.unroll == 0 || (body.unroll > 0 && body.kind == RegionKind::loop),
         "a loop is unrolled by a factor of 1 or more");
    rule(region == 0 || body.parent < region, "a region comes after the one around it");
    for (std::size_t k = 0; k < body.arguments.size(); ++k) {
      const Node& argument = graph_[body.arguments[k]];
      rule(argument.op == Op::argument && argument.region == region && argument.position() == k,
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

}  // namespace tessera::internal
