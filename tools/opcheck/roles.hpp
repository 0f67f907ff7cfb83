// Warp-specialized matmuls on sm_90a.
#pragma once
#include "opcheck/check.hpp"

namespace tessera::internal::opcheck {

/// Checks that the case is warp-specialized on sm_90a, if the tile supports it, or else the reason in the plan's note:
/// no fallback stays unnoticed. Needs no GPU. Empty for a case without an expectation about warp specialization.
Verdict check_roles(const Case& each);

}  // namespace tessera::internal::opcheck
