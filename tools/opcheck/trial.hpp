// One run of a case: its tensors, and what may become of them.
#pragma once
#include "opcheck/memory.hpp"
#include "reference/reference.hpp"

namespace tessera::internal::opcheck {

class Trial {
 public:
  explicit Trial(const Case& of);

  const HostTensors& tensors() const { return tensors_; }
  std::span<const std::int64_t> grid() const { return grid_; }

  /// After the run: what is wrong with the tensors, empty if nothing is.
  std::string difference() const;

 private:
  const Case& case_;
  HostTensors tensors_;
  std::vector<std::int64_t> grid_;
  std::vector<reference::Tensor> expected_;
};

}  // namespace tessera::internal::opcheck
