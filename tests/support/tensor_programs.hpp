// Random tensor programs, with inputs for which every op is well conditioned.
#pragma once
#include <random>

#include "support/tensor_reference.hpp"

namespace tessera::internal {

struct RandomProgram {
  std::vector<LazyRef> results;
  ReferenceEvaluator reference;
  bool has_halves = false;  ///< are there tensors of bf16?
};
RandomProgram random_tensor_program(const Device& device, std::uint64_t seed);

/// The first error in the results of a run; empty if each is within `tolerance` of the reference, relative to the
/// larger of its size and 1. Elements that the reference cannot represent are skipped.
std::string compare_results(RandomProgram& program, const std::vector<detail::AnyTensor>& results, double tolerance);

}  // namespace tessera::internal
