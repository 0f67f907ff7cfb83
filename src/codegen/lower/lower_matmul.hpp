// Matmuls: where each finds its operands and addend, and the partial sums that it leaves with several threads.
#pragma once
#include "codegen/lower/lower_fetch.hpp"

namespace tessera::internal::lowering {

void mma(Steps& steps, Fetches& fetches, Id id);

}  // namespace tessera::internal::lowering
