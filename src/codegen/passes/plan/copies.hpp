// Copies of tiles from global to shared memory that TMA does not do.
#pragma once
#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// Chooses how each tile of a fetch is copied, now that its place is known.
void choose_copies(Plan& plan);

}  // namespace tessera::internal::codegen
