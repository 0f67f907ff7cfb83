// The parameters of tensors, scalars and the grid that the text of a plan's steps names.
#pragma once
#include <set>
#include <tuple>

#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// Kind, argument and axis of parameters.
using ParameterKeys = std::set<std::tuple<KernelParameter::Kind, int, int>>;

/// The parameters of kinds pointer, extent, stride, list, scalar and grid that a complete plan needs; for other kinds the
/// plan says so itself. A kernel that checks itself needs all of a tensor that it accesses.
ParameterKeys parameter_uses(const Plan& plan);

}  // namespace tessera::internal::codegen
