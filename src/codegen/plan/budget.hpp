// What a plan needs of a multiprocessor, before there is code: estimates that ptxas's logs hold to account in the
// tests.
#pragma once
#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

/// Registers of a thread that hold values at the fullest point, by an estimate that knows no spill.
int pressure(const Plan& plan);

}  // namespace tessera::codegen
