// The part of a kernel before its body: parameters, and the functions that it calls.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// The type of the number of a grid tile.
std::string_view block_type(const Plan& plan);

/// The functions that a kernel calls, and a `#line` directive behind those of the author.
std::vector<std::string> functions_of(const Plan& plan);

/// The head of a kernel.
std::string head_of_kernel(const Plan& plan);
/// How the device function of a plan in a sequence begins.
inline constexpr std::string_view head_of_launch_in_sequence = "__device__ __forceinline__ void ";
/// The head of the function for a tile of a launch in a sequence. The parameters of the launch are in a struct in shared
/// memory; `body` names those that it uses.
std::string head_in_sequence(const Plan& plan, std::string_view body);

}  // namespace tessera::internal::codegen
