// Products: where each finds its operands, what it adds to, and the sums that it leaves with several threads.
#pragma once
#include "codegen/lower/lower_fetch.hpp"

namespace tessera::internal::lowering {

void mma(Steps& steps, Fetches& fetches, Id id);

}  // namespace tessera::internal::lowering
