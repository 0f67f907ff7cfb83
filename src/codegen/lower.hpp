// Steps for a graph whose layouts are chosen.
#pragma once
#include <set>

#include "codegen/lowering.hpp"

namespace tessera::lowering {

/// Fills the plan's steps, values and buffers. Layouts of more than `most_registers` elements a thread, and values of
/// the nodes `in_memory`, are kept in memory. Returns nodes whose values turned out to need that: then all is to be
/// done again with them.
std::set<Id> lower(const Facts& facts, const std::map<Id, ProductPlan>& products, const Layouts& layouts,
                   int most_registers, const std::set<Id>& in_memory, Plan& plan);

}  // namespace tessera::lowering
