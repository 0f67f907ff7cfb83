// The part of a right operand that a CTA will read, prefetched into the L2 cache while earlier launches still run.
#pragma once
#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// For each matmul of few rows of a complete plan with one role, the prefetch of its right operand: a tensor of rank 2
/// that the kernel only reads, whose tile is selected by a grid coordinate along one axis, and covers the other axis in
/// the course of the kernel.
Body prefetched_weights(const Plan& plan);

}  // namespace tessera::internal::codegen
