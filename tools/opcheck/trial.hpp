// One run of a case: its tensors, and the check of its results.
#pragma once
#include "opcheck/memory.hpp"
#include "reference/reference.hpp"

namespace tessera::internal::opcheck {

class Trial {
 public:
  explicit Trial(const Case& of);

  const HostTensors& tensors() const { return tensors_; }
  std::span<const std::int64_t> grid() const { return grid_; }

  /// After the run: the errors in the tensors, empty if there are none.
  std::string difference() const;

 private:
  const Case& case_;
  HostTensors tensors_;
  std::vector<std::int64_t> grid_;
  std::vector<reference::Tensor> expected_;
};

}  // namespace tessera::internal::opcheck
