#include "codegen/plan/names.hpp"

#include <fmt/format.h>

namespace tessera::internal::codegen {

std::string name_of(const Label& label) {
  std::string name = label.graph > 0 ? fmt::format("g{}_{}", label.graph, label.stem) : label.stem;
  if (label.number >= 0) name += fmt::format("_{}", label.number);
  return name + label.suffix;
}

std::string name_of(const Plan& plan, StorageId id) {
  const Storage& storage = plan.storages[id];
  return std::visit(Overloaded{
                        [&](std::monostate) { return name_of(storage.label); },
                        [&](const ScalarParameter& scalar) {
    return name_of(plan, {KernelParameter::Kind::scalar, scalar.argument, 0});
  },
                        [&](const ExtentParameter& extent) {
    return name_of(plan, {KernelParameter::Kind::extent, extent.argument, extent.axis});
  },
                        [](const BlockIndex& block) { return fmt::format("block{}", block.axis); },
                        [&](const Counter& counter) { return name_of(plan, counter.loop); },
                    },
                    storage.known);
}

std::string name_of(const Plan& plan, ValueId id) { return name_of(plan, plan.values[id].storage); }
std::string name_of(const Plan& plan, LoopId id) { return name_of(plan.loops[id].counter); }
std::string name_of(const Plan& plan, BufferId id) { return name_of(plan.buffers[id].label); }
std::string name_of(ScratchId id) { return fmt::format("scratch{}", id.index); }
std::string name_of(const Plan& plan, PipelineId id) { return name_of(plan.pipelines[id].label); }
std::string name_of(const Plan& plan, PipelineStateId id) { return name_of(plan.states[id].label); }
std::string name_of(const Plan& plan, TensorMapId id) { return name_of(plan.tensor_maps[id].label); }

std::string member_name(const TileAccess& access) { return name_of(access.label) + "_tensor"; }

std::string tensor_name(const Plan& plan, int parameter) {
  constexpr std::string_view access[] = {"in", "out", "inout", "scalar"};
  const Parameter& tensor = plan.tensors.at(static_cast<std::size_t>(parameter));
  return fmt::format("{}{}", access[static_cast<int>(tensor.access)],
                     argument_number(plan.tensors, static_cast<std::size_t>(parameter)) - 1);
}

std::string name_of(const Plan& plan, const KernelParameter& p) {
  const std::string axis = std::to_string(p.axis), argument = std::to_string(p.argument);
  const auto tensor = [&] { return tensor_name(plan, p.argument); };
  const auto phase = [&] { return plan.phases.size() == 1 ? "" : argument; };
  const auto map = [&] { return name_of(plan, TensorMapId{p.argument}); };
  switch (p.kind) {
#define KERNEL_PARAMETER(kind, bytes, type, name, value) \
  case KernelParameter::Kind::kind:                      \
    return name;
#include "codegen/target/kernel_parameters.def"
  }
  return "";
}

}  // namespace tessera::internal::codegen
