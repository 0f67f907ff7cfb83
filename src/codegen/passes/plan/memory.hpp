// Shared memory allocation: offsets of buffers and scratch memory. Pieces that are not in use at the same time share a
// place; pieces that do not fit go to the workspace.
#pragma once
#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

void place_memory(Plan& plan);

}  // namespace tessera::internal::codegen
