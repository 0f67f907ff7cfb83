// Steps for a graph whose layouts are chosen.
#pragma once
#include <set>

#include "codegen/lowering.hpp"

namespace tessera::lowering {

/// What is kept in memory though registers would hold it.
struct InMemory {
  std::set<Id> values;  ///< of these nodes
  std::set<Id> left;    ///< left operands of these products
};

/// Fills the plan's steps, values and buffers. Layouts of more than `most_registers` elements a thread are kept in
/// memory, too. Returns nodes whose values turned out to need that: then all is to be done again with them.
std::set<Id> lower(const Facts& facts, const std::map<Id, ProductPlan>& products, const Layouts& layouts,
                   int most_registers, const InMemory& in_memory, Plan& plan);

}  // namespace tessera::lowering
