// Sweeps over parts of tiles: which elements their operands are.
#pragma once
#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// Is the element that a thread reads of a value, for each register of a sweep over a part of a tile, at the place of
/// the element that it computes?
bool reads_own_places(const Plan& plan, const Sweep& sweep, const Operand& operand);

}  // namespace tessera::internal::codegen
