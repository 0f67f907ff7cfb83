// Loads ahead of computation that does not need them.
#pragma once
#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// In a kernel with a latency-bound matmul, moves loads of tensors that it only reads up to the first place where their
/// coordinates are known, in their order, as far as registers suffice: a CTA has few warps then, and its time is that
/// of a chain of dependent loads. In a kernel without matmuls, the same for fewer registers, also within each iteration
/// of a loop: loads of several tensors are under way at a time. Other kernels have other warps to run meanwhile.
void issue_loads_early(Plan& plan);

}  // namespace tessera::internal::codegen
