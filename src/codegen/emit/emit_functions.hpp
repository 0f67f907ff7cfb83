// Device functions that authors write as cuda_op.
#pragma once
#include <string>
#include <string_view>

#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// "float name(float a, float b)", for the given number of operands.
std::string function_head(std::string_view type, std::string_view name, std::size_t operands);
/// The function of a cuda_op. A line directive gives the op as the file name, so compiler errors in its expression name
/// it.
std::string function_text(const CustomFunction& function);

}  // namespace tessera::internal
