// Steps for a graph whose layouts are chosen. All warps of a CTA run them; or a role lowers the nodes that are its own,
// and puts steps of its own in between.
#pragma once
#include <functional>
#include <memory>
#include <set>

#include "codegen/lower/lower_fetch.hpp"
#include "codegen/lower/role_rules.hpp"

namespace tessera::internal::lowering {

/// The iterations of a loop that a role runs.
struct Iterations {
  Operand count;
  ValueId first = {};  ///< index of the first iteration; none: the loop's first
};

/// Adds the steps of a graph to those of a role, and the objects that they name to the plan's tables: buffers, scratch
/// memory, loops, storage and values.
class GraphLowering {
 public:
  /// Layouts of more than `most_registers` elements per thread are kept in memory, as are the values `in_memory`.
  GraphLowering(const GraphAnalysis& analysis, const std::map<Id, MatmulPlan>& matmuls, const Layouts& layouts,
                int most_registers, const InMemory& in_memory, const GraphPlace& place, Plan& plan, Role& role,
                RoleRules rules = {});
  ~GraphLowering();

  Steps& steps() { return steps_; }
  /// Is the node the role's own?
  bool does(Id id) const;
  void node(Id id);
  /// All of the role's nodes in a region.
  void region(RegionId id);
  /// Nodes whose values turned out to need memory: then lowering must start again with them.
  std::set<Id> must_be_in_memory() { return values_.must_be_in_memory(); }

  // --- a loop piece by piece, for a role that adds steps to it; node() lowers it whole

  /// Initializes the carried values.
  std::vector<ValueId> carry(Id loop);
  /// The loop's counter.
  LoopId count(Id loop);
  Iterations iterations(Id loop);
  /// Lowers the first iteration ahead of the loop. `some` says at run time whether there is one; none: there always is.
  /// Returns the iterations that are left of `count`.
  Iterations peel_first(Id loop, ValueId some, const Operand& count, const std::function<void()>& iteration);
  void iterate(Id loop, LoopId counter, const Iterations& range, const std::function<void()>& iteration);
  /// Lowers nodes of a loop and what they need of it, for the iteration after the current one or, ahead of the loop,
  /// for the first. Returns their values; the nodes themselves have none then.
  std::vector<ValueId> for_next(Id loop, const std::vector<Id>& nodes, const Iterations& range, bool first);
  /// At the end of an iteration: the loop's yields become its carried values.
  void move_on(Id loop, const std::vector<ValueId>& carried);
  /// The carried values become the loop's results.
  void end_loop(Id loop, std::vector<ValueId> carried);

 private:
  class Nodes;

  const RoleRules rules_;
  const Fusion fusion_;
  Values values_;
  Steps steps_;
  Fetches fetches_;
  std::unique_ptr<Nodes> nodes_;
};

}  // namespace tessera::internal::lowering
