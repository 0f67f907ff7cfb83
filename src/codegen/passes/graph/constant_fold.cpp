// constant_fold: %2 = add %0 %1 of constants 3 and 4 becomes a constant 7. Replaced by the value that they equal: x *
// 1, x - 0, x << 0, x + 0 (integers), -(-x), a minimum, maximum, and, or, of x and x, a reshape to the same shape, and
// a select by a constant or of x and x. x * 0 and x modulo 1 of integers become 0.
#include <cmath>

#include "codegen/passes.hpp"
#include "graph/evaluate.hpp"
#include "graph/rewrite.hpp"

namespace tessera::internal {
namespace {

class Folder final : public Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  Id rewrite(const Node& node, std::span<const Id> in) override {
    if (const Id id = fold_constants(node, in); id != no_id) return id;
    if (const Id id = fold_identity(node, in); id != no_id) return id;
    return Rewriter::rewrite(node, in);
  }

  bool constant(Id id) const { return made(id).op == Op::constant; }
  Cell value(Id id) const { return made(id).number(); }
  bool is(Id id, std::int64_t number) const {
    if (!constant(id)) return false;
    return with_host(host_type(made(id).type), [&]<class T>(T) {
      if (std::is_floating_point_v<T> && number == 0) return false;
      return value_in<T>(value(id)) == static_cast<T>(number);
    });
  }

  Id fold_constants(const Node& node, std::span<const Id> in) {
    if (node.op == Op::custom) return no_id;  // the author's: on a GPU its result may differ
    const bool computed =
        is_elementwise(node.op) || node.op == Op::reshape || node.op == Op::permute || node.op == Op::broadcast;
    if (!computed) return no_id;
    for (Id id : in)
      if (!constant(id)) return no_id;
    Cell cell = value(in[0]);
    if (node.op == Op::cast)
      cell = evaluate_cast(made(in[0]).type, node.type, cell);
    else if (node.op == Op::bitcast)
      cell = evaluate_bitcast(made(in[0]).type, node.type, cell);
    else if (node.op == Op::select)
      cell = value(in[cell.i32 ? 1 : 2]);
    else if (is_elementwise(node.op))
      cell = evaluate(node.op, made(in[0]).type, cell, in.size() > 1 ? value(in[1]) : Cell{},
                      in.size() > 2 ? value(in[2]) : Cell{});
    return builder().constant(node.type, cell, node.shape, node.location);
  }

  bool is_zero(Id id) const {
    return constant(id) && made(id).bits() == 0;  // the bits of -0 are not 0
  }

  // Returns an operand that the op leaves unchanged; or 0. (x + 0 of reals is no such case: -0 + 0 is 0, as is -0 - -0.
  // Nor is x - x, which may be NaN; the smaller or larger of NaN and NaN is NaN.)
  Id fold_identity(const Node& node, std::span<const Id> in) {
    const auto same = [&](Id id) { return made(id).shape == node.shape && made(id).type == node.type; };
    const auto zero = [&] { return builder().constant(node.type, {}, node.shape, node.location); };
    const bool integer = info(node.type).kind == ElementKind::integer;
    switch (node.op) {
      case Op::add:
        if (integer && is(in[1], 0) && same(in[0])) return in[0];
        if (integer && is(in[0], 0) && same(in[1])) return in[1];
        return no_id;
      case Op::sub:
      case Op::shift_left:
      case Op::shift_right:
        return is_zero(in[1]) && same(in[0]) ? in[0] : no_id;
      case Op::neg:
        return made(in[0]).op == Op::neg ? made(in[0]).in[0] : no_id;
      case Op::mul:
        if (is(in[1], 1) && same(in[0])) return in[0];
        if (is(in[0], 1) && same(in[1])) return in[1];
        return integer && (is(in[0], 0) || is(in[1], 0)) ? zero() : no_id;
      case Op::div:
      case Op::floor_div:
      case Op::cdiv:
        return is(in[1], 1) && same(in[0]) ? in[0] : no_id;
      case Op::modulo:
        return is(in[1], 1) ? zero() : no_id;
      case Op::minimum:
      case Op::maximum:
      case Op::minimum_nan:
      case Op::maximum_nan:
      case Op::logical_and:
      case Op::logical_or:
      case Op::bitwise_and:
      case Op::bitwise_or:
        return in[0] == in[1] ? in[0] : no_id;
      case Op::select:
        if (in[1] == in[2] && same(in[1])) return in[1];
        if (!constant(in[0])) return no_id;
        return same(in[value(in[0]).i32 ? 1 : 2]) ? in[value(in[0]).i32 ? 1 : 2] : no_id;
      case Op::cast:
      case Op::bitcast:
      case Op::reshape:
      case Op::broadcast:
        return same(in[0]) ? in[0] : no_id;
      case Op::permute:
        for (std::int64_t i = 0; const std::int64_t axis : node.permutation())
          if (axis != i++) return no_id;
        return in[0];
      case Op::extract:
        if (!same(in[0]) || std::ranges::count(node.steps(), 1) != std::ssize(node.steps())) return no_id;
        return std::ranges::all_of(in.subspan(1), [&](Id first) { return is(first, 0); }) ? in[0] : no_id;
      default:
        return no_id;
    }
  }
};

}  // namespace

Graph constant_fold(const Graph& graph) { return Folder(graph).run(); }

}  // namespace tessera::internal
