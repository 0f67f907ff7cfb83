#include "codegen/emit/emit_head.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>

#include "codegen/emit/emit_functions.hpp"
#include "codegen/emit/emit_writer.hpp"
#include "codegen/plan/called.hpp"
#include "codegen/plan/names.hpp"
#include "codegen/plan/spelling.hpp"
#include "graph/in_literal.hpp"

namespace tessera::internal::codegen {
namespace {

std::string type_of(const Plan& plan, const KernelParameter& p) {
  const std::string_view index_type = plan.variant.index64 ? "i64" : "int";
  const auto tensor = [&]() -> const Parameter& { return plan.tensors[static_cast<std::size_t>(p.argument)]; };
  constexpr std::string_view tensor_map_type = "const __grid_constant__ TensorMap";
  const auto scalar_type = [&] { return register_type(tensor().type); };
  const auto pointer_type = [&] {
    // Other CTAs may change the tensor and then release it, so it must not be __restrict__.
    const bool alone = !plan.in_sequence && (tensor().access != Access::in_out || !plan.learns_of_others());
    return fmt::format("{}{}*{}", tensor().access == Access::in ? "const " : "", memory_type(tensor().type),
                       alone ? " __restrict__" : "");
  };
  const auto list_type = [&] {
    return fmt::format("{}TensorList<{}, {}, {}, {}>", plan.in_sequence ? "" : "const __grid_constant__ ",
                       memory_type(tensor().type), tensors_of_list(plan.tensors, static_cast<std::size_t>(p.argument)),
                       tensor().rank, index_type);
  };
  switch (p.kind) {
#define KERNEL_PARAMETER(kind, bytes, type, name, value) \
  case KernelParameter::Kind::kind:                      \
    return std::string(type);
#include "codegen/target/kernel_parameters.def"
  }
  return "";
}

// Parameters of a tensor are in one line of the kernel's head, as are scalars, and what belongs to the launch.
std::pair<int, int> line_of(const KernelParameter& p) {
  using Kind = KernelParameter::Kind;
  switch (p.kind) {
    case Kind::tensor_map:
      return {0, p.argument};
    case Kind::pointer:
    case Kind::extent:
    case Kind::stride:
    case Kind::list:
      return {1, p.argument};
    case Kind::scalar:
      return {2, 0};
    default:
      return {3, 0};
  }
}

std::string called_text(Op op, ElementType type) {
  return fmt::format("__device__ __attribute__((noinline)) {} {{ return {}; }}",
                     function_head(register_type(type), fmt::format("called_{}", name(op)), info(op).in.count),
                     info(op).cuda_real);
}

// The parameters, in groups of one line each, with `end` behind each parameter but a group's last.
std::vector<std::string> parameter_lines(const Plan& plan, std::string_view end) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
    const KernelParameter& parameter = plan.parameters[i];
    const bool begins = i == 0 || line_of(parameter) != line_of(plan.parameters[i - 1]);
    if (begins) lines.emplace_back();
    lines.back() += fmt::format("{}{} {}", begins ? "" : end, type_of(plan, parameter), name_of(plan, parameter));
  }
  return lines;
}

}  // namespace

std::string_view block_type(const Plan& plan) { return plan.variant.index64 ? "i64" : "u32"; }

std::string head_of_kernel(const Plan& plan) {
  return fmt::format("extern \"C\" __global__ void __launch_bounds__({}, {}) {}(\n    {}) {{\n", plan.threads(),
                     plan.blocks, plan.kernel, fmt::join(parameter_lines(plan, ", "), ",\n    "));
}

std::string head_in_sequence(const Plan& plan, std::string_view body) {
  std::string text = fmt::format("struct {}_launch {{\n", plan.kernel);
  for (const std::string& line : parameter_lines(plan, "; ")) text += fmt::format("  {};\n", line);
  text += fmt::format("}};\n\n{}{}(const {}_launch& launch, const GridBarrier& previous, u32 tile) {{\n",
                      head_of_launch_in_sequence, plan.kernel, plan.kernel);
  for (const KernelParameter& parameter : plan.parameters)
    if (const std::string own = name_of(plan, parameter); names(body, own))
      text += fmt::format("  const auto{} {} = launch.{};\n", parameter.kind == KernelParameter::Kind::list ? "&" : "",
                          own, own);
  return text;
}

std::vector<std::string> functions_of(const Plan& plan) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < plan.functions.size(); ++i) {
    const auto before = std::span(plan.functions).first(i);
    if (std::ranges::count(before, plan.functions[i].name, &CustomFunction::name) == 0)
      texts.push_back(function_text(plan.functions[i]));
  }
  if (!plan.functions.empty() && plan.location.file)
    texts.push_back(fmt::format("#line {} \"{}\"", plan.location.line, in_literal(plan.location.file)));
  if (calls_functions(plan))
    for (const auto& [op, type] : long_functions(plan)) texts.push_back(called_text(op, type));
  return texts;
}

}  // namespace tessera::internal::codegen
