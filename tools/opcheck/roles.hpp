// Products that sm_90a makes by roles.
#pragma once
#include "opcheck/check.hpp"

namespace tessera::internal::opcheck {

/// Whether roles share the case's work on sm_90a, where the tile suits them, and what the plan's note says where they
/// do not: nobody falls back unseen. Needs no GPU. Empty for a case that says nothing of roles.
Verdict check_roles(const Case& each);

}  // namespace tessera::internal::opcheck
