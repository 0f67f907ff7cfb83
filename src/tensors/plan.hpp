// A tensor program made ready to run on a device: kernels, what each launch passes, and the memory in between.
#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tensors/kernel_writer.hpp"

namespace tessera::internal {

struct PlannedKernel {
  std::shared_ptr<const Executable> executable;  ///< none: there is nothing to compute
  std::vector<Passed> arguments;
  Tiling tiling;
  std::vector<std::string_view> steps;  ///< what it computes, in the author's words
  std::int64_t bytes = 0, operations = 0;
  double predicted_us = 0;  ///< on a GPU, by bytes, operations and the cost of a launch
};

class TensorPlan {
 public:
  TensorPlan(const TensorProgram& program, const MatmulTarget& target, bool fuse);

  const std::vector<PlannedKernel>& kernels() const { return kernels_; }
  /// The bytes of intermediate results, of which those that are never needed together share memory.
  std::int64_t memory() const { return memory_; }
  const TensorProgram& program() const { return program_; }
  const Fusion& fusion() const { return fusion_; }

  /// New tensors for the results.
  std::vector<detail::AnyTensor> new_results(const Device& device) const;
  /// The arguments of a kernel's launch, and the owners of their memory, if `owners` is not null.
  std::vector<Argument> arguments(const PlannedKernel& kernel, const Given& given,
                                  std::span<const detail::AnyTensor> results, void* memory,
                                  std::vector<std::shared_ptr<void>>* owners = nullptr) const;
  /// True for one caller: the one that makes the kernels' code, in parallel, ahead of the first launch.
  bool begins_warm_up() const { return !is_warm_->exchange(true); }
  std::string describe() const;
  /// The program, kernel by kernel.
  std::string graph() const;

 private:
  void assign_memory();
  std::string text_of(const PlannedKernel& kernel) const;

  TensorProgram program_;
  Fusion fusion_;
  std::vector<PlannedKernel> kernels_;
  std::vector<std::int64_t> offset_;  // of a value's buffer; -1: none
  std::vector<int> result_;           // of a value: its number among the results; -1: it is none
  std::vector<int> input_, scalar_;   // the same among inputs and scalars
  std::int64_t memory_ = 0;
  std::unique_ptr<std::atomic<bool>> is_warm_ = std::make_unique<std::atomic<bool>>(false);
};

}  // namespace tessera::internal
