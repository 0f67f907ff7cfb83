#include "codegen/emit/emit_functions.hpp"

#include <fmt/format.h>

#include "codegen/plan/spelling.hpp"

namespace tessera::internal {

std::string function_head(std::string_view type, std::string_view name, std::size_t operands) {
  std::string parameters;
  for (std::size_t i = 0; i < operands; ++i)
    parameters += fmt::format("{}{} {}", i ? ", " : "", type, static_cast<char>('a' + i));
  return fmt::format("{} {}({})", type, name, parameters);
}

std::string function_text(const CustomFunction& function) {
  const std::string head = function_head(codegen::register_type(function.type), "user_" + function.name,
                                         static_cast<std::size_t>(function.operands));
  // The last line may end in a comment.
  const bool comment = function.expression.find("//") != std::string::npos;
  return fmt::format("#line 1 \"cuda_op {}\"\n__device__ inline {} {{ return {}{}; }}", function.name, head,
                     function.expression, comment ? "\n" : "");
}

}  // namespace tessera::internal
