// Inserts barriers (`__syncthreads`, or named barriers of a role): one before each step that reads what other threads
// wrote, or writes what they may still read, unless there is one in between already.
#pragma once
#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// A barrier is for all threads of the role that it is in.
void insert_barriers(Plan& plan);

}  // namespace tessera::internal::codegen
