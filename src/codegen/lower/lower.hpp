// Steps for a graph whose layouts are chosen.
#pragma once
#include <set>

#include "codegen/lower/lowering.hpp"

namespace tessera::lowering {

/// What is kept in memory though registers would hold it.
struct InMemory {
  std::set<Id> values;  ///< of these nodes
  std::set<Id> left;    ///< left operands of these products
};

/// Where a graph stands among those of a plan.
struct GraphPlace {
  int graph = 0;            ///< its number, for labels
  int first_parameter = 0;  ///< its parameters are tensors of the plan from here on
  int first_axis = 0;       ///< and its grid's axes, axes of all phases
};

/// Adds the steps of a graph to those of a role, and what they name to the tables of the plan: buffers, scratch memory,
/// loops, storage and values. Layouts of more than `most_registers` elements a thread are kept in memory, too. Returns
/// nodes whose values turned out to need that: then all is to be done again with them.
std::set<Id> lower(const Facts& facts, const std::map<Id, ProductPlan>& products, const Layouts& layouts,
                   int most_registers, const InMemory& in_memory, const GraphPlace& place, Plan& plan, Role& role);

}  // namespace tessera::lowering
