// Reads that would take more registers, if ptxas brought all of them forward, than a thread has.
#pragma once
#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

/// Where one step follows another without a loop, and what they read takes more than the target's
/// `registers_of_reads`, inputs are read in the order of the steps.
void keep_reads_in_order(Plan& plan);

}  // namespace tessera::codegen
