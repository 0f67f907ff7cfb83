// What authors would like of a kernel's code: what can be had of it, and what could not.
#pragma once
#include "codegen/lower/lowering.hpp"

namespace tessera::internal::lowering {

/// Warps that a block is to have, as its hints say; 0 if they say none, or a number that no block has.
int wished_warps(const Hints& hints);
/// Blocks of a multiprocessor for a plan whose threads need so many registers for values: as its hints say, where that
/// leaves these registers; else 0.
int wished_blocks(const Facts& facts, const Plan& plan, bool has_products, int needed);
/// Remarks what of the hints it does not have, and why.
void note_wishes(const Facts& facts, Plan& plan);

}  // namespace tessera::internal::lowering
