#include "codegen/forms/swap_operands.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "codegen/schedule/wgmma_tiles.hpp"
#include "graph/rewrite.hpp"

namespace tessera::internal {
namespace {

using namespace lowering;

constexpr std::array<std::int64_t, 2> transposition{1, 0};

class OperandSwapper final : public Rewriter {
 public:
  OperandSwapper(const GraphAnalysis& analysis, const std::vector<Id>& matmuls)
      : Rewriter(analysis.graph), analysis_(analysis) {
    for (const Id matmul : matmuls) carried_.insert(source()[matmul].in[2]);
  }

 private:
  Id enter(Id argument, Id initial) override { return carried_.contains(argument) ? transposed(initial) : initial; }
  Id leave(Id argument, Id result) override { return carried_.contains(argument) ? transposed(result) : result; }

  Id rewrite(const Node& node, std::span<const Id> in) override {
    if (node.op != Op::mma || !carried_.contains(node.in[2])) return Rewriter::rewrite(node, in);
    const std::array operands{made_as({node.in[1], true}), made_as({node.in[0], true}), in[2]};
    return builder().apply(Op::mma, node.type, operands, {}, node.location);
  }

  // A form of a tile of the source.
  struct Form {
    Id id = no_id;
    bool transposed = false;
    int twice = -1;  // the axis, before the transposition, along which each element comes twice
    auto operator<=>(const Form&) const = default;
  };

  // That of an expression is the same expression over forms of its operands, down to the tiles that are loaded. An
  // explicit stack: an expression may be a hundred thousand ops deep.
  Id made_as(const Form& form) {
    std::vector<Form> open{form};
    while (!open.empty()) {
      const Form next = open.back();
      if (forms_.contains(next)) {
        open.pop_back();
        continue;
      }
      const std::vector<Form> needed = operands_of(next);
      const std::size_t before = open.size();
      for (const Form& operand : needed)
        if (!forms_.contains(operand)) open.push_back(operand);
      if (open.size() > before) continue;
      forms_[next] = made(next, needed);
      open.pop_back();
    }
    return forms_.at(form);
  }

  std::vector<Form> operands_of(const Form& form) const {
    const Node& node = source()[form.id];
    std::vector<Form> operands;
    if (is_expression(form.id)) {
      for (const Id in : node.in) operands.push_back({in, form.transposed, form.twice});
    } else if (is_transposition(form.id)) {
      operands.push_back({node.in[0], !form.transposed, form.twice < 0 ? -1 : 1 - form.twice});
    } else if (const auto [first, second, axis] = interleaved(form.id); first != no_id && form.twice < 0) {
      operands = {{first, form.transposed, axis}, {second, form.transposed, axis}};
    }
    return operands;
  }
  Id made(const Form& form, const std::vector<Form>& operands) {
    const Node& node = source()[form.id];
    std::vector<Id> in;
    for (const Form& operand : operands) in.push_back(forms_.at(operand));
    const Shape shape = shape_of(form);
    if (is_expression(form.id)) return builder().apply(node.op, node.type, in, node.attr, node.location, shape);
    if (is_transposition(form.id)) return in[0];
    if (!in.empty()) return by_turns(in[0], in[1], shape, form.transposed == (interleaved(form.id).axis == 0) ? 1 : 0);
    const Id copy = oriented(form);
    return form.twice < 0 || node.shape.rank() < 2 || node.shape[form.twice] == 1 ? copy : twice(copy, shape, form);
  }
  Shape shape_of(const Form& form) const {
    const Shape& shape = source()[form.id].shape;
    if (shape.rank() == 0) return shape;
    int rows = shape.rank() == 2 ? shape[0] : 1, columns = shape[shape.rank() - 1];
    if (form.twice == 0 && rows > 1) rows *= 2;
    if (form.twice == 1 && columns > 1) columns *= 2;
    if (form.transposed) return {columns, rows};
    return shape.rank() == 2 ? Shape{rows, columns} : Shape{columns};
  }

  bool is_expression(Id id) const {
    const Node& node = source()[id];
    return analysis_.in_loop(id) && (is_elementwise(node.op) || node.op == Op::broadcast) && node.shape.rank() > 0;
  }
  bool is_transposition(Id id) const {
    return source()[id].op == Op::permute && std::ranges::equal(source()[id].permutation(), transposition);
  }
  // interleave() of two tiles along an axis.
  struct Interleaved {
    Id first = no_id, second = no_id;
    int axis = -1;
  };
  Interleaved interleaved(Id id) const {
    const Node& whole = source()[id];
    if (whole.op != Op::reshape || whole.shape.rank() != 2 || !analysis_.in_loop(id)) return {};
    const Node& pairs = source()[whole.in[0]];
    if (pairs.op != Op::concat || pairs.in.size() != 2 || pairs.axis() == 0 || pairs.shape.rank() != 3) return {};
    const int axis = pairs.axis() - 1;
    Shape half = whole.shape;
    half[axis] /= 2;
    for (const Id part : pairs.in)
      if (source()[part].op != Op::reshape || source()[source()[part].in[0]].shape != half) return {};
    return {source()[pairs.in[0]].in[0], source()[pairs.in[1]].in[0], axis};
  }

  // The copy of a tile, or its transpose.
  Id transposed(Id copy) {
    const Node at = Rewriter::made(copy);
    return builder().apply(Op::permute, at.type, std::array{copy}, transposition, at.location);
  }
  Id oriented(const Form& form) {
    const Node& node = source()[form.id];
    const Id copy = copy_of(form.id);
    if (!form.transposed || node.shape.rank() == 0) return copy;
    if (node.shape.rank() == 2) return transposed(copy);
    return builder().apply(Op::reshape, node.type, std::array{copy}, {}, node.location, Shape{node.shape[0], 1});
  }
  // Each element twice, side by side.
  Id twice(Id copy, const Shape& shape, const Form& form) {
    const Node at = Rewriter::made(copy);
    const int axis = form.transposed ? 1 - form.twice : form.twice;
    const auto apart = [&](int count) {
      return axis == 0 ? Shape{at.shape[0], count, at.shape[1]} : Shape{at.shape[0], at.shape[1], count};
    };
    const auto apply = [&](Op op, Id of, const Shape& to) {
      return builder().apply(op, at.type, std::array{of}, {}, at.location, to);
    };
    return apply(Op::reshape, apply(Op::broadcast, apply(Op::reshape, copy, apart(1)), apart(2)), shape);
  }
  // The elements of `first` at even indices along an axis, those of `second` at odd ones.
  Id by_turns(Id first, Id second, const Shape& shape, int axis) {
    const Node at = Rewriter::made(first);
    const Shape line = axis == 0 ? Shape{shape[0], 1} : Shape{1, shape[1]};
    const auto apply =
        [&](Op op, ElementType type, std::initializer_list<Id> in, std::span<const std::int64_t> attr = {}) {
      return builder().apply(op, type, std::vector(in), attr, at.location, line);
    };
    const std::array<std::int64_t, 1> along{axis};
    const Id one = builder().constant(ElementType::i32, Cell{.i32 = 1}, {}, at.location);
    const Id bit = apply(Op::bitwise_and, ElementType::i32, {apply(Op::iota, ElementType::i32, {}, along), one});
    const Id odd = apply(Op::cast, ElementType::pred, {bit});
    return builder().apply(Op::select, at.type, std::array{odd, second, first}, {}, at.location);
  }

  const GraphAnalysis& analysis_;
  std::set<Id> carried_;      // the accumulators inside the loop
  std::map<Form, Id> forms_;  // those that were needed
};

}  // namespace

std::optional<Graph> swap_operands(const GraphAnalysis& analysis) {
  std::vector<Id> matmuls;
  for (const auto& region : analysis.order)
    for (const Id id : region)
      if (analysis[id].op == Op::mma) matmuls.push_back(id);
  const auto reads = [&](Id id) { return why_not_as_it_is(analysis, analysis[id].in[1], false).empty(); };
  const auto has_units = [&](Id id) { return has_wgmma(analysis[analysis[id].in[0]].type); };
  const auto accumulates = [&](Id id) { return only_accumulates(analysis, id); };
  if (!std::ranges::all_of(matmuls, has_units) || std::ranges::all_of(matmuls, reads) ||
      !std::ranges::all_of(matmuls, accumulates))
    return std::nullopt;
  return OperandSwapper(analysis, matmuls).run();
}

}  // namespace tessera::internal
