// Whether the L2 cache retains data that is read or data that is written.
#pragma once
#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// Where each CTA reads tiles of its own once, and writes about as many bytes, reads are retained in the L2 cache
/// (evict_last) rather than writes, which are then evicted sooner and in order. Tensors that fit in the cache are
/// exempt: the launch decides that.
void set_l2_policy(Plan& plan);

}  // namespace tessera::internal::codegen
