// Plans that are kept, and their launches.
#pragma once
#include <memory>
#include <span>

#include "tensors/plan.hpp"
#include "tessera/tensors/run.hpp"

namespace tessera::internal {

/// The plan of a program on a device: a known one, or a new one.
std::shared_ptr<const TensorPlan> plan_of(const TensorProgram& program, const Device& device, bool fuse = true);
void launch_plan(const TensorPlan& plan, const Given& given, std::span<const detail::AnyTensor> results,
                 const Stream& stream);
LazySequence sequence_of(const TensorPlan& plan, const Given& given);

}  // namespace tessera::internal
