#include <fmt/format.h>

#include "codegen/plan.hpp"

namespace tessera {
namespace {

std::string class_text(const Parameter& parameter, const TensorClass& tensor) {
  if (parameter.access == Access::scalar) return to_string(parameter);
  std::string text = to_string(parameter);
  text += tensor.unit_axis < 0 ? ", strided" : fmt::format(", dense along axis {}", static_cast<int>(tensor.unit_axis));
  text += fmt::format(", aligned to {}", static_cast<int>(tensor.alignment));
  std::string multiples;
  for (int axis = 0; axis < parameter.rank; ++axis)
    if (tensor.divisible >> axis & 1) multiples += fmt::format("{}{}", multiples.empty() ? "" : ",", axis);
  if (!multiples.empty()) text += fmt::format(", extents of axes {} multiples of 16", multiples);
  return text;
}

std::string product_text(const Plan& plan, const Step& step) {
  const Product& product = *step.product;
  constexpr std::string_view kind[] = {"mma.sync", "fused multiply-add, from shared memory",
                                       "fused multiply-add, from registers"};
  const auto operand = [&](const ProductOperand& o) {
    if (o.buffer >= 0) return plan.buffers[static_cast<std::size_t>(o.buffer)].name;
    return plan.values[static_cast<std::size_t>(o.value)].name;
  };
  std::string text =
      fmt::format("{} += {} {}: [{},{}] x [{},{}] {}, {}", plan.values[static_cast<std::size_t>(step.out)].name,
                  operand(product.a), operand(product.b), product.m, product.k, product.k, product.n,
                  name(product.type), kind[static_cast<int>(product.kind)]);
  if (product.kind != ProductKind::thin) text += fmt::format(", {} x {} warps", product.warps_m, product.warps_n);
  if (product.partial) text += ", sums over lanes and warps after the loop";
  return text;
}

}  // namespace

std::string to_string(const Plan& plan) {
  std::string text;
  const auto line = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
    text += '\n';
  };
  line("kernel {} for {}: {} threads, {} bytes of shared memory{}", plan.author, plan.arch.name(), plan.threads(),
       plan.shared_bytes,
       plan.workspace_bytes ? fmt::format(", {} bytes of workspace a block", plan.workspace_bytes) : "");
  for (std::size_t i = 0; i < plan.tensors.size(); ++i)
    line("parameter {}: {}", i, class_text(plan.tensors[i], plan.variant.tensors[i]));
  if (plan.variant.wide) line("offsets and numbers of blocks have 64 bits");
  if (plan.raster) line("blocks run in groups of {} along the first axis", plan.raster);
  if (plan.persistent) line("a block of threads takes one block of the grid after another");
  for (const Buffer& buffer : plan.buffers)
    line("{}: {}[{},{}] in {} at {}{}", buffer.name, name(buffer.type), buffer.rows, buffer.columns,
         buffer.in_workspace ? "the workspace" : "shared memory", buffer.offset,
         buffer.stages > 1 ? fmt::format(", {} stages of {} bytes", buffer.stages, buffer.stage_bytes()) : "");
  const auto steps = [&](const auto& self, const std::vector<Step>& list) -> void {
    for (const Step& step : list) {
      if (step.product) line("{}", product_text(plan, step));
      self(self, step.body);
    }
  };
  steps(steps, plan.steps);
  std::string last;
  for (const Value& value : plan.values) {
    if (value.home == Home::variable || value.name == last) continue;
    last = value.name;
    constexpr std::string_view home[] = {"", "registers", "shared memory", "workspace"};
    line("{}: {}{} in {} {}: {}", value.name, name(value.type), to_string(value.shape), value.layout.registers(),
         home[static_cast<int>(value.home)], to_string(value.layout));
  }
  for (const std::string& note : plan.notes) line("note: {}", note);
  return text;
}

}  // namespace tessera
