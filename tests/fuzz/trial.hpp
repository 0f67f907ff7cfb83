// One launch on several executors, with the results of each compared with the reference.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fuzz/memory.hpp"
#include "reference/reference.hpp"
#include "tessera/jit/device.hpp"

namespace tessera::internal::fuzz {

struct Failure {
  std::string kind;  ///< the executor and a short description of the error: equal for equal faults
  std::string text;  ///< the full message
};

class Trial {
 public:
  /// A kernel as it was traced, and its arguments. The reference's run of it calls `after_block` after each CTA.
  Trial(Graph graph, std::span<const Given> given, std::uint64_t seed, const std::function<void()>& after_block = {});

  const Graph& graph() const { return graph_; }
  std::uint64_t seed() const { return seed_; }
  /// Must a launch be rejected, for memory that overlaps or for the kernel's requirements?
  bool is_refused() const { return refused_; }
  std::span<const std::int64_t> grid() const { return grid_; }
  Memory& memory() { return memory_; }
  /// The allowed results of a launch, one tensor per parameter; nothing if it must be rejected.
  std::span<const reference::Tensor> expected() const { return expected_; }

  /// Launches on a copy of the memory and compares; the launch itself may also return a failure. An Error is right
  /// exactly if the launch must be rejected; nothing may have been written then.
  using Launch = std::function<std::optional<Failure>(Memory& memory)>;
  std::optional<Failure> check(const std::string& executor, const Launch& launch) const;

  /// As a user launches it, with all passes.
  std::optional<Failure> check_on(const Device& device) const;
  /// By the CPU executor, as it was traced. Trials that must be rejected are left out.
  std::optional<Failure> check_without_passes() const;

 private:
  Graph graph_;
  std::uint64_t seed_;
  Memory memory_;
  std::vector<std::int64_t> grid_;
  bool refused_ = false;
  std::vector<reference::Tensor> expected_;
};

}  // namespace tessera::internal::fuzz
