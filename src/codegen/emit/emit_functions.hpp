// The device functions that authors write as cuda_op.
#pragma once
#include <string>
#include <string_view>

#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// "float name(float a, float b)", of so many operands.
std::string function_head(std::string_view type, std::string_view name, std::size_t operands);
/// The function of a cuda_op. The compiler names the op where its expression is wrong, as a directive gives it as the
/// file.
std::string function_text(const CustomFunction& function);

}  // namespace tessera::internal
