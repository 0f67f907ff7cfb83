// The producer role: fills the stages of the pipelines, by TMA or by its threads.
#pragma once
#include "codegen/lower/sm90/warp_role.hpp"

namespace tessera::internal::lowering {

RoleRules producer_rules(const WarpSpecialization& how);
/// Lowers the role.
void lower_producer(const MatmulPipelines& pipelines, GraphLowering& graph);

}  // namespace tessera::internal::lowering
