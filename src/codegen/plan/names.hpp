// Names of a plan's entries, for the text of plans and kernels. No pass reads them.
#pragma once
#include <string>

#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

std::string name_of(const Label& label);
/// A storage's name. If a thread knows its value without a step: "scalar3", "in0_extent1", "block0", "i_5".
std::string name_of(const Plan& plan, StorageId storage);
std::string name_of(const Plan& plan, ValueId value);
std::string name_of(const Plan& plan, LoopId loop);  ///< the name of its counter
std::string name_of(const Plan& plan, BufferId buffer);
std::string name_of(ScratchId scratch);
std::string name_of(const Plan& plan, PipelineId pipeline);
std::string name_of(const Plan& plan, PipelineStateId state);
std::string name_of(const Plan& plan, TensorMapId map);
/// The tensor of a list that an access selects: "load_7_tensor".
std::string member_name(const TileAccess& access);
/// A tensor's pointer, a list of tensors, or a scalar, with the argument's number from 0: "in0", "out2", "scalar3".
std::string tensor_name(const Plan& plan, int parameter);
/// A parameter of the kernel: "in0", "in0_extent1", "in0_stride0", "scalar3", "blocks".
std::string name_of(const Plan& plan, const KernelParameter& parameter);

}  // namespace tessera::internal::codegen
