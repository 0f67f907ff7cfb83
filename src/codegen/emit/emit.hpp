// Emits a plan as text.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// The kernel as CUDA C++, without the prelude. A plan in a sequence becomes a struct of its parameters and a device
/// function (persistent_source.hpp), without the functions that it calls.
std::string emit(const Plan& plan);

/// The functions that a kernel calls, and a `#line` directive behind those of the author.
std::vector<std::string> functions_of(const Plan& plan);

/// How the device function of a plan in a sequence begins.
inline constexpr std::string_view head_of_launch_in_sequence = "__device__ __forceinline__ void ";

}  // namespace tessera::internal::codegen
