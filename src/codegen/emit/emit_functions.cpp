#include "codegen/emit/emit_functions.hpp"

#include <fmt/format.h>

namespace tessera::internal {

std::string function_head(std::string_view type, std::string_view name, std::size_t operands) {
  std::string parameters;
  for (std::size_t i = 0; i < operands; ++i)
    parameters += fmt::format("{}{} {}", i ? ", " : "", type, static_cast<char>('a' + i));
  return fmt::format("{} {}({})", type, name, parameters);
}

std::string function_text(const CustomFunction& function) {
  // C's names, which need no definition: the text is also compiled alone.
  constexpr std::string_view types[] = {"float", "double", "int", "long long", "unsigned", "unsigned long long"};
  const std::string_view type =
      function.type == ElementType::pred ? "bool" : types[static_cast<std::size_t>(host_type(function.type))];
  const std::string head = function_head(type, "user_" + function.name, static_cast<std::size_t>(function.operands));
  // The last line may end in a comment.
  const bool comment = function.expression.find("//") != std::string::npos;
  return fmt::format("#line 1 \"cuda_op {}\"\n__device__ inline {} {{ return {}{}; }}", function.name, head,
                     function.expression, comment ? "\n" : "");
}

}  // namespace tessera::internal
