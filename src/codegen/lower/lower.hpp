// Steps for a graph whose layouts are chosen.
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <string_view>

#include "codegen/schedule/layouts.hpp"

namespace tessera::internal::lowering {

/// What is kept in memory though registers would hold it.
struct InMemory {
  std::set<Id> values;  ///< of these nodes
  std::set<Id> left;    ///< left operands of these products
};

/// Where a graph stands among those of a plan.
struct GraphPlace {
  int graph = 0;                 ///< its number, for labels
  int first_parameter = 0;       ///< its parameters are tensors of the plan from here on
  int first_axis = 0;            ///< and its grid's axes, axes of all phases
  std::string_view suffix = {};  ///< of labels, for a role that lowers the graph once more
};

class Steps;
/// Lowers the nodes outside of loops and branches for which `which` holds.
using LowerNodes = std::function<void(const std::function<bool(Id)>& which)>;

/// What a role does of a graph where several share the work; all of it, unless it says otherwise.
class RoleLowering {
 public:
  virtual ~RoleLowering() = default;
  virtual void whole(Steps&, const LowerNodes& lower) {
    lower([](Id) { return true; });
  }
  virtual bool does(Id) const { return true; }
  /// Does it stage the operands of products itself?
  virtual bool stages() const { return true; }
  /// Is a load no step, but part of those that use it?
  virtual bool reads_where_used(Id) const { return false; }
  /// Does a carried value need nothing to start from?
  virtual bool skips_zero_init(Id) const { return false; }
  struct Iterations {
    codegen::Operand count;
    ValueId first = {};  ///< of them; none: the loop's first
  };
  /// Which rounds of a loop it runs.
  virtual Iterations iterations(Steps&, Id loop);
  /// Does the first round stand by itself, ahead of the loop? If so, where this number is true; it has none else. No
  /// number: there is one.
  virtual std::optional<ValueId> first_apart(Steps&, const codegen::Operand&) { return {}; }
  /// What stands around a loop, behind the start of its carried values, and at the end of each round.
  virtual void before_loop(Steps&) {}
  virtual void end_iteration(Steps&, LoopId) {}
  virtual void after_loop(Steps&) {}
  /// An elementwise op, a product or a store, if it is done in another way than usual. The loop is none in a first
  /// round that stands by itself.
  virtual bool compute(Steps&, Id) { return false; }
  virtual bool mma(Steps&, Id, LoopId) { return false; }
  virtual bool store(Steps&, Id) { return false; }
};

/// Adds the steps of a graph to those of a role, and what they name to the tables of the plan: buffers, scratch memory,
/// loops, storage and values. Layouts of more than `most_registers` elements a thread are kept in memory, too. Returns
/// nodes whose values turned out to need that: then all is to be done again with them.
std::set<Id> lower(const GraphAnalysis& analysis, const std::map<Id, MatmulPlan>& matmuls, const Layouts& layouts,
                   int most_registers, const InMemory& in_memory, const GraphPlace& place, Plan& plan, Role& role,
                   RoleLowering&& role_lowering = {});

}  // namespace tessera::internal::lowering
