// The loop over k of a kernel whose k-iterations, or operands, CTAs may share.
#pragma once
#include <cstdint>
#include <span>

#include "codegen/schedule/machine_model.hpp"
#include "graph/evaluate.hpp"

namespace tessera::internal {

/// The k-iterations of a kernel that several CTAs may share: those of the loop around its only matmul.
class SplitKLoop {
 public:
  SplitKLoop() = default;
  explicit SplitKLoop(const Graph& graph);
  /// The k-iterations of a launch with these arguments; 0: the kernel has no such loop.
  std::int64_t of(std::span<const Argument> arguments) const;
  const MmaExtents& extents() const { return extents_; }
  /// May CTAs with neighboring tiles along the grid's first axis load the right operand for each other?
  bool may_multicast() const { return right_ >= 0; }
  /// Bytes that divide where rows of the right operand begin, at most 128.
  int right_alignment(std::span<const Argument> arguments) const;

 private:
  MmaExtents extents_;
  int right_ = -1;       // parameter of the right operand; -1: it is computed, or depends on the first axis of the grid
  int right_bytes_ = 0;  // of one of its elements
  UniformProgram count_;
};

}  // namespace tessera::internal
