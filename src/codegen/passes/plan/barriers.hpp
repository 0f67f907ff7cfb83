// Barriers: ahead of each step that reads what other threads wrote, or writes what they may still read, unless one
// stands in between already.
#pragma once
#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// For phases of one role, whose threads are all of the block.
void insert_barriers(Plan& plan);

}  // namespace tessera::internal::codegen
