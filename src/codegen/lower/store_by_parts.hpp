// A store whose expression reads large tiles, part by part, so that the reads of a part fit in registers.
#pragma once
#include "codegen/lower/lower_steps.hpp"
#include "codegen/lower/role_rules.hpp"

namespace tessera::internal::lowering {

/// Lowers a store of a tile that is held as the accumulators, if it reads such tiles where it uses them; returns false
/// if it does not.
bool store_by_parts(Steps& steps, const RoleRules& rules, Id store);

}  // namespace tessera::internal::lowering
