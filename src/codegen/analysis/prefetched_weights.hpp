// The part of a right operand that a CTA will read, prefetched into the L2 cache while earlier launches still run.
#pragma once
#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// For each matmul of few rows of a complete plan with one role, the prefetch of its right operand, if that is loaded
/// as it is from a tensor of rank 2 that the kernel only reads. A grid coordinate selects its tile along one axis;
/// along the other the kernel reads all of the tensor.
Body prefetched_weights(const Plan& plan);

}  // namespace tessera::internal::codegen
