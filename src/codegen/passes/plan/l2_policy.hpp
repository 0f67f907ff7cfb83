// What the L2 cache keeps longer: what is read, or what is written.
#pragma once
#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// Where each block of the grid reads tiles of its own once, and writes about as much, reads are kept in the L2 cache
/// rather than what is written, which then leaves it sooner and in order. Those of tensors that the cache holds stay as
/// they are: the launch decides.
void set_l2_policy(Plan& plan);

}  // namespace tessera::internal::codegen
