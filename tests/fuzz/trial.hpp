// One launch, tried on several executors, and what each made of it compared with the reference.
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
  std::string kind;  ///< the executor and what is wrong in few words: the same for the same fault
  std::string text;  ///< the whole story
};

class Trial {
 public:
  /// A kernel as it was traced, and what it is launched with. The reference's run of it calls `after_block` as it goes.
  Trial(Graph graph, std::span<const Given> given, std::uint64_t seed, const std::function<void()>& after_block = {});

  const Graph& graph() const { return graph_; }
  std::uint64_t seed() const { return seed_; }
  /// Must a launch be refused, for memory that overlaps or for what the kernel requires?
  bool is_refused() const { return refused_; }
  std::span<const std::int64_t> grid() const { return grid_; }
  Memory& memory() { return memory_; }
  /// What a launch may leave, a tensor for each parameter; nothing if it must be refused.
  std::span<const reference::Tensor> expected() const { return expected_; }

  /// Launches on a copy of the memory and compares; the launch itself may find fault, too. An Error is right where the
  /// launch must be refused, and only there; nothing may have been written then.
  using Launch = std::function<std::optional<Failure>(Memory& memory)>;
  std::optional<Failure> check(const std::string& executor, const Launch& launch) const;

  /// As a user launches it, passes and all.
  std::optional<Failure> check_on(const Device& device) const;
  /// By the CPU executor, as it was traced. What must be refused is left out.
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
