// How tiles get from global into shared memory, where no TMA does it.
#pragma once
#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// How each tile of a fetch is copied, now that it is known where it goes.
void choose_copies(Plan& plan);

}  // namespace tessera::internal::codegen
