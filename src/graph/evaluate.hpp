// Single numbers: the host expressions of ops.def applied to cells, for constant folding and for values that a launch
// computes.
#pragma once
#include <span>
#include <vector>

#include "tessera/graph/argument.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// A unary, binary or ternary op on operands of the given element type. Unused operands are ignored.
Cell evaluate(Op op, ElementType operand, Cell a, Cell b = {}, Cell c = {});
/// A cast, with the rounding and saturation of ops.def.
Cell evaluate_cast(ElementType from, ElementType to, Cell value);
/// The value with the same bits; both types must satisfy `bitcasts`.
Cell evaluate_bitcast(ElementType from, ElementType to, Cell value);

/// The identity of a reduction: combining it with a number returns that number.
Cell identity(Op reduction, ElementType type);

/// Launch-uniform values of a graph, prepared once: run() computes all of them without allocating.
class UniformProgram {
 public:
  UniformProgram() = default;
  /// Computes `roots`, each of which is uniform in a launch.
  UniformProgram(const Graph& graph, std::span<const Id> roots);
  std::size_t size() const { return steps_.size(); }
  /// `values` has size() cells.
  void run(std::span<const Argument> arguments, std::span<Cell> values) const;
  /// The cell in which run() stores the i-th root.
  int position(std::size_t root) const { return roots_[root]; }

 private:
  struct Step {
    Op op;
    ElementType type, operand;
    int in[3];
    std::int64_t attr[2];
    int tensors;  // extent: of the list that in[0] selects from; 0: of a tensor
  };
  std::vector<Step> steps_;
  std::vector<int> roots_;
};

}  // namespace tessera::internal
