// The loop over k of a kernel whose k-iterations CTAs may share.
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

 private:
  MmaExtents extents_;
  UniformProgram count_;
};

}  // namespace tessera::internal
