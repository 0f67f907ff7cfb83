// Steps for a graph whose layouts are chosen.
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <string_view>

#include "codegen/schedule/layouts.hpp"

namespace tessera::internal::lowering {

/// Values that are kept in memory although registers could hold them.
struct InMemory {
  std::set<Id> values;  ///< nodes whose values are
  std::set<Id> left;    ///< matmuls whose left operands are
};

/// The place of a graph among those of a plan.
struct GraphPlace {
  int graph = 0;                 ///< its number, for labels
  int first_parameter = 0;       ///< the plan's tensor of its first parameter
  int first_axis = 0;            ///< the axis, among those of all phases, of its grid's first axis
  std::string_view suffix = {};  ///< of labels, for a role that lowers the graph once more
};

class Steps;
/// Lowers the nodes outside of loops and branches for which `which` holds.
using LowerNodes = std::function<void(const std::function<bool(Id)>& which)>;

/// The part of a graph that one of several roles lowers; all of it by default.
class RoleLowering {
 public:
  virtual ~RoleLowering() = default;
  virtual void whole(Steps&, const LowerNodes& lower) {
    lower([](Id) { return true; });
  }
  virtual bool does(Id) const { return true; }
  /// Does lowering stage the operands of matmuls? (If not, the role does.)
  virtual bool stages() const { return true; }
  /// Is a load part of the steps that use it, without a step of its own?
  virtual bool reads_where_used(Id) const { return false; }
  /// Does a carried value need no initial value?
  virtual bool skips_zero_init(Id) const { return false; }
  struct Iterations {
    codegen::Operand count;
    ValueId first = {};  ///< index of the first iteration; none: the loop's first
  };
  /// The iterations of a loop that the role runs.
  virtual Iterations iterations(Steps&, Id loop);
  /// Is the first iteration peeled off ahead of the loop? If so, the value says at run time whether there is one; an
  /// empty ValueId means that there always is. nullopt: it is not peeled.
  virtual std::optional<ValueId> first_apart(Steps&, const codegen::Operand&) { return {}; }
  /// Steps before a loop, after its carried values are initialized; at the end of each iteration; and after the loop.
  virtual void before_loop(Steps&) {}
  virtual void end_iteration(Steps&, LoopId) {}
  virtual void after_loop(Steps&) {}
  /// Lower an elementwise op, a matmul or a store in another way than usual, and return true if they did. The LoopId is
  /// empty in a first iteration that is peeled.
  virtual bool compute(Steps&, Id) { return false; }
  virtual bool mma(Steps&, Id, LoopId) { return false; }
  virtual bool store(Steps&, Id) { return false; }
};

/// Adds the steps of a graph to those of a role, and the objects that they name to the plan's tables: buffers, scratch
/// memory, loops, storage and values. Layouts of more than `most_registers` elements per thread are kept in memory,
/// too. Returns the nodes whose values turned out to need memory: then lowering must start again with them.
std::set<Id> lower(const GraphAnalysis& analysis, const std::map<Id, MatmulPlan>& matmuls, const Layouts& layouts,
                   int most_registers, const InMemory& in_memory, const GraphPlace& place, Plan& plan, Role& role,
                   RoleLowering&& role_lowering = {});

}  // namespace tessera::internal::lowering
